SELECT number, name, public_key, removed_at FROM node WHERE public_key = $1
