SELECT number, checksum FROM schema_version ORDER BY number
