DELETE FROM webhook_call WHERE member = $1
