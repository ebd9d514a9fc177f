CREATE TABLE schema_version (number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum BYTEA NOT NULL)
