DELETE FROM invite WHERE expires_at <= $1 AND NOT EXISTS (SELECT 1 FROM ticket t WHERE t.invite = invite.hash)
