SELECT coalesce((SELECT min(number) FROM message), 1), coalesce((SELECT max(number) FROM message), 0)
