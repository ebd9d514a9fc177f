SELECT seq FROM inbox WHERE recipient_member_id = :agent AND turn = 4 ORDER BY seq LIMIT :limit
