//! The statements of the relay's file, each in a file of its own name.

macro_rules! statements {
    ($($name:ident $file:literal)*) => {
        $(pub(super) const $name: &str = include_str!(concat!("sql/", $file, ".sql"));)*

        /// Every statement with its file's name.
        #[cfg(test)]
        const ALL: &[(&str, &str)] = &[$(($file, $name),)*];
    };
}

statements! {
    AGAIN "again"
    AHEAD "ahead"
    ALL_DUE "all_due"
    BLOCKED "blocked"
    BODY "body"
    BODY_PUT_THEIRS "body_put_theirs"
    CHAIN "chain"
    CLAIM_CANDIDATES "claim_candidates"
    CLAIM_NEXT_DUE "claim_next_due"
    CLAIM_TAKE "claim_take"
    COUNTS "counts"
    DUE_NOW "due_now"
    END "end"
    FIND_ID "find_id"
    FIND_KEY "find_key"
    FIND_SEQ "find_seq"
    FORGET "forget"
    FORGET_BODY "forget_body"
    FORGET_LIVE "forget_live"
    INSERT "insert"
    INSERT_BODY "insert_body"
    LAST_OF_KEY "last_of_key"
    LATE_ACK "late_ack"
    LEASES_OVER "leases_over"
    LEFT_FORGET "left_forget"
    LEFT_OF_SCOPE "left_of_scope"
    LEFT_PUT "left_put"
    LIST "list"
    LIST_STATUS "list_status"
    META_FORGET "meta_forget"
    META_GET "meta_get"
    META_PUT "meta_put"
    OPEN_KEYS "open_keys"
    OVER_AGE "over_age"
    RECOVER "recover"
    SORT_PUT "sort_put"
    SORT_ROWS "sort_rows"
    SORT_STATE "sort_state"
    SUPERSEDE "supersede"
    THEIRS_ETAG "theirs_etag"
    TOO_OLD "too_old"
    TRIM "trim"
    UNCLAIM "unclaim"
    WANT_END "want_end"
    WENT_BACK "went_back"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_statement_fits_the_tables_and_every_file_is_listed() {
        let conn = rusqlite::Connection::open_in_memory().unwrap();
        conn.execute_batch(super::super::RELAY_SCHEMA.sum).unwrap();
        for (file, statement) in ALL {
            conn.prepare(statement).unwrap_or_else(|error| panic!("{file}: {error}"));
        }
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/relay/sql");
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), ALL.len());
    }

    fn plan_of(statement: &str, values: &[u32]) -> Vec<String> {
        let conn = rusqlite::Connection::open_in_memory().unwrap();
        conn.execute_batch(super::super::RELAY_SCHEMA.sum).unwrap();
        let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {statement}")).unwrap();
        let rows =
            explain.query_map(rusqlite::params_from_iter(values), |row| row.get::<_, String>(3)).unwrap();
        rows.map(Result::unwrap).collect()
    }

    /// How long the way is to the second of two keys, behind `waiting` writes of the first.
    fn steps_past_one_key(waiting: usize) -> i32 {
        let conn = rusqlite::Connection::open_in_memory().unwrap();
        conn.execute_batch(super::super::RELAY_SCHEMA.sum).unwrap();
        let put = "INSERT INTO envelope (place, envelope_id, idempotency_key, fingerprint, method, path, route_class, scope,
                order_key, barrier, status, outcome, next_attempt_at, queued_at, created_at, body_bytes)
            VALUES (?2, randomblob(16), hex(randomblob(16)), zeroblob(32), 'POST', '/', 0, 'append', ?1, 0, 0, 0, 0, 0, 0, 0)";
        for (place, key) in std::iter::repeat_n("append:a", waiting).chain(["append:b"]).enumerate() {
            conn.execute(put, rusqlite::params![key, place]).unwrap();
        }
        let mut statement = conn.prepare(CLAIM_CANDIDATES).unwrap();
        let asked = rusqlite::named_params! {":every_key": true, ":near": 64, ":now": 1, ":limit": 8};
        let found = statement.query_map(asked, |row| row.get("order_key")).unwrap();
        assert_eq!(found.collect::<Result<Vec<String>, _>>().unwrap(), ["append:a", "append:b"]);
        statement.get_status(rusqlite::StatementStatus::VmStep)
    }

    #[test]
    fn the_way_to_what_may_leave_is_as_long_whatever_waits_behind_one_key() {
        assert_eq!(steps_past_one_key(2_000), steps_past_one_key(200));
    }

    #[test]
    fn a_claim_reads_neither_what_is_done_nor_all_that_waits_to_find_what_is_over() {
        for (plan, index) in [
            (plan_of(LEASES_OVER, &[1]), "envelope_inflight"),
            (plan_of(RECOVER, &[1]), "envelope_inflight"),
            (plan_of(OVER_AGE, &[1, 1]), "envelope_age"),
            (plan_of(CLAIM_NEXT_DUE, &[]), "envelope_queued"),
            (plan_of(FIND_KEY, &[1]), "(idempotency_key=?)"),
        ] {
            assert!(plan.iter().all(|line| line.contains(index)), "{plan:#?}");
        }
    }
}
