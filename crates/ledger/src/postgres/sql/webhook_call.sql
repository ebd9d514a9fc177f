SELECT message, attempts FROM webhook_call WHERE member = $1 AND conversation = $2
