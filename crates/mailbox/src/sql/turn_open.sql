SELECT *, attempt = (SELECT max(attempt) FROM turn AS other WHERE other.inbox_seq = turn.inbox_seq) AS newest FROM turn WHERE agent_member_id = :agent AND state = 0
