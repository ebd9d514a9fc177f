INSERT INTO schema_version (number, name, checksum) VALUES ($1, $2, $3)
