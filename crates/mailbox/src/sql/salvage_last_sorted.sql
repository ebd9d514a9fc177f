SELECT upto FROM outbox_sorted
