UPDATE mesh SET numbers_upto = max(numbers_upto, ?1)
