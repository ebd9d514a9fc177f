//! The statements, each in a file of its own name.

macro_rules! statements {
    ($($name:ident $file:literal)*) => {
        $(pub(crate) const $name: &str = include_str!(concat!("sql/", $file, ".sql"));)*

        /// Every statement with its file's name.
        #[cfg(test)]
        pub(crate) const ALL: &[(&str, &str)] = &[$(($file, $name),)*];
    };
}

statements! {
    ACCEPT_FIND "accept_find"
    AGEING_GET "ageing_get"
    BYTES_IN_USE "bytes_in_use"
    BYTES_REUSABLE "bytes_reusable"
    CLAIM_CLAMP "claim_clamp"
    CLAIM_FIRST_LANE "claim_first_lane"
    CLAIM_GIVE_UP "claim_give_up"
    CLAIM_IS_ON_THE_WIRE "claim_is_on_the_wire"
    CLAIM_NEXT_LANE "claim_next_lane"
    CLAIM_ROWS "claim_rows"
    CLAIM_TAKE "claim_take"
    INBOX_ALL_AFTER "inbox_all_after"
    INBOX_ALL_NEWEST "inbox_all_newest"
    INBOX_CONFIRM "inbox_confirm"
    INBOX_COUNTS "inbox_counts"
    INBOX_LAST "inbox_last"
    INBOX_MARK_READ "inbox_mark_read"
    INBOX_NOTIFY "inbox_notify"
    INBOX_OF_AFTER "inbox_of_after"
    INBOX_OF_NEWEST "inbox_of_newest"
    INBOX_ROW "inbox_row"
    INBOX_RUNG "inbox_rung"
    INBOX_SEQ_BY_MESSAGE "inbox_seq_by_message"
    INBOX_UNCONFIRMED "inbox_unconfirmed"
    LANE_FREE "lane_free"
    LANE_GET "lane_get"
    LANE_PUT "lane_put"
    LEARN_OUTCOME "learn_outcome"
    LEARN_ROW "learn_row"
    MEMBER_ALL "member_all"
    MEMBER_BY_ID "member_by_id"
    MEMBER_BY_NAME "member_by_name"
    MEMBER_BY_TOKEN "member_by_token"
    MEMBER_PUT "member_put"
    MEMBER_TOKEN "member_token"
    META_ALL "meta_all"
    META_GET "meta_get"
    META_PUT "meta_put"
    NAME_BEARS "name_bears"
    NAME_FILE "name_file"
    NAME_FILED "name_filed"
    NAME_FILED_PUT "name_filed_put"
    NAME_OF_ROW "name_of_row"
    NAME_PLACES "name_places"
    NAME_ROW "name_row"
    NAME_ROWS "name_rows"
    NEWEST_DONE "newest_done"
    NEWEST_INSTANT "newest_instant"
    OPERATOR_ABORT "operator_abort"
    OPERATOR_HOLD "operator_hold"
    OPERATOR_LEASE "operator_lease"
    OPERATOR_RELEASE "operator_release"
    OUTBOX_COUNTS "outbox_counts"
    OUTBOX_INSERT "outbox_insert"
    OUTBOX_INSERT_PAYLOAD "outbox_insert_payload"
    OUTBOX_LAST "outbox_last"
    OUTBOX_LIST "outbox_list"
    OUTBOX_LIST_ABORTED "outbox_list_aborted"
    OUTBOX_LIST_DEAD "outbox_list_dead"
    OUTBOX_LIST_DONE "outbox_list_done"
    OUTBOX_LIST_OPEN "outbox_list_open"
    OUTBOX_PAYLOAD "outbox_payload"
    OUTBOX_ROW "outbox_row"
    OUTBOX_SEQ_BY_MESSAGE "outbox_seq_by_message"
    OUTBOX_SEQ_BY_ROW "outbox_seq_by_row"
    OUTBOX_SEQ_OF_REPLACED "outbox_seq_of_replaced"
    PRUNABLE_ABORTED "prunable_aborted"
    PRUNABLE_DEAD "prunable_dead"
    PRUNABLE_DONE "prunable_done"
    PRUNE_DEAD "prune_dead"
    RECEIPT_PUT "receipt_put"
    RECEIPT_ROW "receipt_row"
    RECORD_FIND "record_find"
    RECORD_HEARD "record_heard"
    RECORD_HEARD_TURN "record_heard_turn"
    RECORD_INSERT "record_insert"
    RECORD_INSERT_ENVELOPE "record_insert_envelope"
    RECORD_RENAME "record_rename"
    RECOVER_HOLDS "recover_holds"
    RECOVER_INFLIGHT "recover_inflight"
    REDRIVE "redrive"
    RESTORED_CLOCK "restored_clock"
    RESTORED_INBOX "restored_inbox"
    RESTORED_OUTBOX "restored_outbox"
    RESTORED_TURNS "restored_turns"
    RUNGS_CLEAR "rungs_clear"
    SALVAGE_BURY_WORDLESS "salvage_bury_wordless"
    SALVAGE_BYTES "salvage_bytes"
    SALVAGE_FACT "salvage_fact"
    SALVAGE_INBOX "salvage_inbox"
    SALVAGE_INBOX_ENVELOPE "salvage_inbox_envelope"
    SALVAGE_INBOX_INDEXED "salvage_inbox_indexed"
    SALVAGE_INBOX_INDEXED_BACK "salvage_inbox_indexed_back"
    SALVAGE_INBOX_IS_BEHIND "salvage_inbox_is_behind"
    SALVAGE_IS_BEHIND "salvage_is_behind"
    SALVAGE_LAST "salvage_last"
    SALVAGE_LAST_SORTED "salvage_last_sorted"
    SALVAGE_MARK_INBOX "salvage_mark_inbox"
    SALVAGE_MARK_OUTBOX "salvage_mark_outbox"
    SALVAGE_MARK_TURNS "salvage_mark_turns"
    SALVAGE_MEMBER "salvage_member"
    SALVAGE_META "salvage_meta"
    SALVAGE_NAMES "salvage_names"
    SALVAGE_OUTBOX "salvage_outbox"
    SALVAGE_OUTBOX_INDEXED "salvage_outbox_indexed"
    SALVAGE_OUTBOX_INDEXED_BACK "salvage_outbox_indexed_back"
    SALVAGE_OUTBOX_PAYLOAD "salvage_outbox_payload"
    SALVAGE_REFUSE "salvage_refuse"
    SALVAGE_SORT "salvage_sort"
    SALVAGE_SORTED "salvage_sorted"
    SALVAGE_TURN "salvage_turn"
    SALVAGE_TURN_INDEXED "salvage_turn_indexed"
    SALVAGE_TURN_INDEXED_BACK "salvage_turn_indexed_back"
    SALVAGE_TURN_IS_BEHIND "salvage_turn_is_behind"
    SCRUB_ABORTED "scrub_aborted"
    SCRUB_DONE "scrub_done"
    SCRUB_INBOX_ENVELOPE "scrub_inbox_envelope"
    SCRUB_INBOX_MARK "scrub_inbox_mark"
    SCRUB_OUTBOX_MARK "scrub_outbox_mark"
    SCRUB_OUTBOX_PAYLOAD "scrub_outbox_payload"
    SCRUB_RECEIVED "scrub_received"
    SCRUB_RECIPIENT "scrub_recipient"
    SETTLE_BURY "settle_bury"
    SETTLE_DONE "settle_done"
    SETTLE_LATE_ACK "settle_late_ack"
    SETTLE_RELEASE "settle_release"
    SETTLE_RETIRE_SUCCESSOR "settle_retire_successor"
    SETTLE_RETRY "settle_retry"
    SETTLE_ROW "settle_row"
    SETTLE_UNANSWERED "settle_unanswered"
    SORT_PUT "sort_put"
    SORT_ROWS "sort_rows"
    SORT_STATE "sort_state"
    TURN_BY_ID "turn_by_id"
    TURN_END "turn_end"
    TURN_ENGAGE "turn_engage"
    TURN_EXISTS "turn_exists"
    TURN_EXTEND "turn_extend"
    TURN_GIVEN_UP "turn_given_up"
    TURN_INSERT "turn_insert"
    TURN_INTERRUPT "turn_interrupt"
    TURN_MARK "turn_mark"
    TURN_NAMED "turn_named"
    TURN_NEXT "turn_next"
    TURN_OF_MESSAGE "turn_of_message"
    TURN_OPEN "turn_open"
    TURN_OVER "turn_over"
    TURN_REPLY "turn_reply"
    TURN_RETRY "turn_retry"
    TURN_STANDING "turn_standing"
    UNSETTLED "unsettled"
}

#[cfg(test)]
mod tests {
    use super::ALL;
    use crate::SCHEMA;
    use rusqlite::Connection;

    fn schema() -> Connection {
        let conn = Connection::open_in_memory().unwrap();
        for step in SCHEMA.migrations {
            conn.execute_batch(step.sql).unwrap();
        }
        conn
    }

    fn plan(conn: &Connection, statement: &str) -> String {
        let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {statement}")).unwrap();
        let lines = explain.raw_query().mapped(|row| row.get::<_, String>("detail"));
        lines.collect::<Result<Vec<_>, _>>().unwrap().join("\n")
    }

    #[test]
    fn every_file_is_a_statement_of_this_schema_and_is_listed_here() {
        let conn = schema();
        for (file, statement) in ALL {
            assert!(conn.prepare(statement).is_ok(), "{file}: {:?}", conn.prepare(statement).err());
        }
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/sql");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        let listed: Vec<String> = ALL.iter().map(|(file, _)| format!("{file}.sql")).collect();
        assert_eq!(files, listed);
    }

    #[test]
    fn no_statement_walks_a_whole_table_but_the_lists_that_page_through_it() {
        let conn = schema();
        let paging = ["outbox_list", "outbox_list_done", "inbox_all_after", "inbox_all_newest"];
        // They walk once, through a file no daemon has open.
        let salvage = ["salvage_mark_inbox", "salvage_mark_outbox", "salvage_mark_turns", "salvage_sort"];
        for (file, statement) in ALL {
            let plan = plan(&conn, statement);
            for table in ["outbox", "inbox", "outbox_payload", "inbox_envelope", "turn"] {
                let walks = plan.lines().any(|line| line == format!("SCAN {table}"));
                let allowed = paging.contains(file) || salvage.contains(file);
                assert!(!walks || allowed, "{file}:\n{plan}");
            }
        }
    }

    #[test]
    fn counts_and_lists_of_open_rows_read_their_index_alone() {
        let conn = schema();
        for (file, statement) in ALL {
            let covered =
                ["outbox_counts", "outbox_list_open", "inbox_counts", "claim_first_lane", "claim_next_lane"];
            if covered.contains(file) {
                let plan = plan(&conn, statement);
                let bare = |line: &&str| line.contains("USING INDEX");
                assert_eq!(plan.lines().find(bare), None, "{file}:\n{plan}");
            }
        }
    }

    #[test]
    fn a_start_reads_the_rows_that_callers_named_and_no_others() {
        let plan = plan(&schema(), super::NAME_ROWS);
        assert!(plan.contains("USING INDEX outbox_named"), "{plan}");
    }

    /// Rows enough to see whether they were read.
    fn steps_to_the_next_lane(waiting: usize) -> i32 {
        let conn = schema();
        let put = "INSERT INTO outbox (id, sender_member_id, client_message_id, request_fingerprint, to_asked, lane,
            enqueued_at) VALUES (randomblob(16), zeroblob(16), hex(randomblob(16)), zeroblob(32), '#t', ?1, 0)";
        for lane in std::iter::repeat_n("a", waiting).chain(["b"]) {
            conn.execute(put, [lane]).unwrap();
        }
        let mut statement = conn.prepare(super::CLAIM_NEXT_LANE).unwrap();
        let from = rusqlite::named_params! {":sender": [0_u8; 16], ":lane": "a"};
        let found: String = statement.query_row(from, |row| row.get("lane")).unwrap();
        assert_eq!(found, "b");
        statement.get_status(rusqlite::StatementStatus::VmStep)
    }

    #[test]
    fn the_way_to_the_next_lane_is_as_long_whatever_waits_in_the_last() {
        assert_eq!(steps_to_the_next_lane(1_000), steps_to_the_next_lane(1));
    }
}
