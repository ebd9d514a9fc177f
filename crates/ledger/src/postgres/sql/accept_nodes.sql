-- Shared, so that a newer link of the node opens before this transaction or after it, never in between.
SELECT name, number, link_epoch, removed_at FROM node WHERE name = ANY ($1::text[]) ORDER BY number FOR SHARE
