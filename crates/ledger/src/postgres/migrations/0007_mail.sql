-- Nothing here: this store writes an index for less than the statement that would keep stretches of mail beside it.
SELECT 1;
