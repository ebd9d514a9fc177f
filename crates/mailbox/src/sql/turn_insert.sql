INSERT INTO turn (id, agent_member_id, inbox_seq, attempt, redelivered, holder, began_at, lease_until)
VALUES (:id, :agent, :inbox_seq, :attempt, :redelivered, :holder, :now, :lease_until)
