SELECT *, attempt = (SELECT max(attempt) FROM turn AS other WHERE other.inbox_seq = turn.inbox_seq) AS newest FROM turn WHERE id = :id AND agent_member_id = :agent
