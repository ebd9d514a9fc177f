UPDATE envelope_sorted SET upto = :upto
