DELETE FROM webhook_call WHERE member = $1 AND message = $2
