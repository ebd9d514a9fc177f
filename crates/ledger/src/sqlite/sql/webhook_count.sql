SELECT count(*) FROM webhook
