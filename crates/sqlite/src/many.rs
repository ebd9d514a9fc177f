//! One `INSERT` for many rows. A statement for each opens every index of the table again, which costs more than its rows.

use rusqlite::Connection;
use rusqlite::types::ToSqlOutput;

/// Rows that one statement takes, the most first; what is left goes alone.
const SIZES: [usize; 2] = [16, 4];

/// An `INSERT … VALUES (…)` without numbers at its parameters, and the same for several rows.
pub struct InsertMany {
    one: &'static str,
    many: [String; SIZES.len()],
}

impl InsertMany {
    /// Nothing may stand behind the values of `statement`.
    pub fn new(statement: &'static str) -> Self {
        let one = statement.trim_end();
        let row = one.rfind("VALUES").map_or("", |place| one[place + "VALUES".len()..].trim_start());
        Self { one, many: SIZES.map(|rows| format!("{one}{}", format!(", {row}").repeat(rows - 1))) }
    }

    /// Inserts the rows in their order; `values` are a row's parameters.
    pub fn insert<'row, R, V>(
        &self,
        conn: &Connection,
        rows: &'row [R],
        values: impl Fn(&'row R) -> V,
    ) -> rusqlite::Result<()>
    where
        V: IntoIterator<Item = ToSqlOutput<'row>>,
    {
        let mut left = rows;
        while !left.is_empty() {
            let fits = SIZES.iter().zip(&self.many).find(|(size, _)| **size <= left.len());
            let (size, statement) = fits.map_or((1, self.one), |(size, statement)| (*size, statement));
            let (now, later) = left.split_at(size);
            let mut statement = conn.prepare_cached(statement)?;
            for (place, value) in now.iter().flat_map(&values).enumerate() {
                statement.raw_bind_parameter(place + 1, value)?;
            }
            statement.raw_execute()?;
            left = later;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::InsertMany;
    use rusqlite::Connection;

    #[test]
    fn every_row_is_inserted_once_and_in_order() {
        let insert = InsertMany::new("INSERT INTO t (a, b) VALUES (?, ?)\n");
        for count in 0..70_i64 {
            let conn = Connection::open_in_memory().unwrap();
            conn.execute_batch("CREATE TABLE t (place INTEGER PRIMARY KEY, a INTEGER, b TEXT)").unwrap();
            let rows: Vec<i64> = (1..=count).collect();
            insert.insert(&conn, &rows, |row| [(row * 2).into(), "text".into()]).unwrap();
            let mut read = conn.prepare("SELECT place, a, b FROM t ORDER BY place").unwrap();
            let read = read.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
            let expected: Vec<_> = rows.iter().map(|row| (*row, row * 2, "text".to_owned())).collect();
            assert_eq!(read.map(Result::unwrap).collect::<Vec<(i64, i64, String)>>(), expected);
        }
    }
}
