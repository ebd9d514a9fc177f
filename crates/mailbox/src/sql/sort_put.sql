UPDATE outbox_sorted SET upto = :upto
