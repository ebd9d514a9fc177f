SELECT url, secret, old_secret, old_secret_until FROM webhook WHERE member = $1
