-- The highest place a table ever gave away, where that is counted.
SELECT seq FROM sqlite_sequence WHERE name = :name
