-- The highest place a table ever gave away.
SELECT seq FROM sqlite_sequence WHERE name = :name
