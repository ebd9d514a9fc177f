-- Of all messages there ever were.
SELECT max(numbers_upto, coalesce((SELECT max(number) FROM message), 0)) FROM mesh
