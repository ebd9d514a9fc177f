DELETE FROM escalation WHERE at <= $1
