SELECT number, link_epoch, redelivered_upto, inbox_epoch, removed_at FROM node WHERE name = $1
