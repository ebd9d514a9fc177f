SELECT number, name, public_key, removed_at FROM node WHERE name = $1
