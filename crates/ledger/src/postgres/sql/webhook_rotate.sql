-- Only two secrets sign: what an earlier rotation left goes.
UPDATE webhook SET old_secret = secret, old_secret_until = $3, secret = $2 WHERE member = $1
