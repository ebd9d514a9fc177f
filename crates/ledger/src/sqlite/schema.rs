//! The file's tables as steps and as their sum.

use ::sqlite::{Migration, Schema};

/// The tables this binary knows.
pub const SCHEMA: Schema = Schema {
    migrations: &[
        Migration { number: 1, name: "books", sql: include_str!("migrations/0001_books.sql") },
        Migration { number: 2, name: "webhooks", sql: include_str!("migrations/0002_webhooks.sql") },
        Migration { number: 3, name: "chat", sql: include_str!("migrations/0003_chat.sql") },
        Migration { number: 4, name: "hub", sql: include_str!("migrations/0004_hub.sql") },
        Migration { number: 5, name: "outlived", sql: include_str!("migrations/0005_outlived.sql") },
        Migration { number: 6, name: "dedupe_by_id", sql: include_str!("migrations/0006_dedupe_by_id.sql") },
        Migration { number: 7, name: "mail", sql: include_str!("migrations/0007_mail.sql") },
        Migration { number: 8, name: "lean", sql: include_str!("migrations/0008_lean.sql") },
        Migration { number: 9, name: "stretches", sql: include_str!("migrations/0009_stretches.sql") },
        Migration {
            number: 10,
            name: "ageing_and_receipt_marks",
            sql: include_str!("migrations/0010_ageing_and_receipt_marks.sql"),
        },
    ],
    sum: include_str!("schema.sql"),
};

#[cfg(test)]
mod tests {
    use ::sqlite::assert_schema_sum;
    use ::sqlite::rusqlite::Connection;
    use model::DeliveryRung;

    use super::SCHEMA;
    use crate::types::read::ConversationKind;

    #[test]
    fn the_steps_add_up_to_the_checked_in_schema() {
        assert_schema_sum(&SCHEMA);
    }

    fn books() -> Connection {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch(SCHEMA.sum).unwrap();
        conn
    }

    #[test]
    fn the_delivery_view_says_the_models_words() {
        let conn = books();
        for rung in DeliveryRung::ALL {
            conn.execute(
                "INSERT INTO delivery (message, recipient, sender, rung, rung_told) VALUES (?1, 1, 1, ?1, ?1)",
                [rung.code()],
            )
            .unwrap();
            let words: (String, String) = conn
                .query_row(
                    "SELECT rung, rung_told FROM delivery_text WHERE message = ?1",
                    [rung.code()],
                    |row| Ok((row.get(0)?, row.get(1)?)),
                )
                .unwrap();
            assert_eq!(words, (rung.word().to_owned(), rung.word().to_owned()));
        }
        for outside in [0, 8] {
            let refused = conn.execute(
                "INSERT INTO delivery (message, recipient, sender, rung) VALUES (9, 1, 1, ?1)",
                [outside],
            );
            assert!(refused.is_err(), "{outside}");
        }
    }

    #[test]
    fn the_dedupe_view_says_the_models_words() {
        let conn = books();
        conn.execute_batch(
            "INSERT INTO dedupe VALUES (1, 1, 'a', 0, zeroblob(32), zeroblob(16), 1, 1, 0, 'alerts', 5, NULL, 1),
                (1, 1, 'b', 0, zeroblob(32), zeroblob(16), 1, 1, 1, 'ci', 5, NULL, 1),
                (1, 1, 'c', 1, zeroblob(32), NULL, NULL, NULL, NULL, NULL, 5, NULL, 0)",
        )
        .unwrap();
        let mut rows = conn.prepare("SELECT state, destination_kind FROM dedupe_text ORDER BY 1, 2").unwrap();
        let words: Vec<(String, Option<String>)> =
            rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect();
        let kind = |kind: ConversationKind| Some(kind.word().to_owned());
        let accepted = |of| ("accepted".to_owned(), kind(of));
        assert_eq!(
            words,
            [accepted(ConversationKind::Dm), accepted(ConversationKind::Topic), ("retired".to_owned(), None)]
        );
    }

    #[test]
    fn an_accepted_dedupe_row_names_its_message_and_a_retired_one_names_none() {
        let conn = books();
        for (state, id) in [(0, "NULL"), (1, "zeroblob(16)")] {
            let half = format!(
                "INSERT INTO dedupe VALUES (1, 1, 'a', {state}, zeroblob(32), {id}, 1, 1, 0, 'x', 5, NULL, 1)"
            );
            assert!(conn.execute(&half, []).is_err(), "{half}");
        }
    }

    #[test]
    fn a_file_that_drew_numbers_from_a_sequence_goes_on_behind_its_last() {
        let conn = Connection::open_in_memory().unwrap();
        let (before, lean) = SCHEMA.migrations.split_at(7);
        before.iter().for_each(|step| conn.execute_batch(step.sql).unwrap());
        conn.execute_batch(
            "INSERT INTO mesh (number, id, slug, topics, conn_policy, created_at) VALUES (1, zeroblob(16), 'm', 0, 0, 0);
            INSERT INTO message (number, conversation, seq, id, ts_us, sender, client_message_id, envelope)
                VALUES (3, 1, 1, zeroblob(16), 5, 2, 'kept', x'01'), (9, 1, 2, randomblob(16), 6, 2, 'pruned', x'02');
            DELETE FROM message WHERE number = 9;",
        )
        .unwrap();
        lean.iter().for_each(|step| conn.execute_batch(step.sql).unwrap());
        let numbers = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(numbers(include_str!("sql/message_last_number.sql")), 9);
        assert_eq!(
            numbers("SELECT number FROM message WHERE client_message_id = 'kept' AND envelope = x'01'"),
            3
        );
    }
}
