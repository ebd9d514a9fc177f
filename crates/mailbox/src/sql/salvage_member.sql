SELECT * FROM member
