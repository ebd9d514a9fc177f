-- A notification is no fact: its own commit need not wait for the disk.
SET synchronous_commit = off;
LISTEN postrider_committed
