DELETE FROM webhook_call WHERE member = $1 AND message = $2 AND lease_token = $3
