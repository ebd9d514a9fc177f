UPDATE outbox_filed SET upto = :upto
