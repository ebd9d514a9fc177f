SELECT upto FROM outbox_filed
