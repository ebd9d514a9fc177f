SELECT *, attempt = (SELECT max(attempt) FROM turn AS other WHERE other.inbox_seq = turn.inbox_seq) AS newest FROM turn WHERE inbox_seq = :inbox_seq ORDER BY attempt
