//! The whole binary on a disk that fails, and what it syncs when it starts after a kill.

use testkit::bin::Binary;
use testkit::fleet::disk::{Plan, outboxes_set_aside_by_failing_reads, run, syncs_before_first_answer};

/// What a gate can wait for.
const FAULTS: u64 = 10;

#[test]
fn whichever_system_call_fails_no_acknowledged_request_is_lost_and_no_refused_one_is_stored() {
    let outcome = run(&Plan { binary: binary(), faults: FAULTS, seed: 1 }).unwrap();
    assert!(outcome.holds(), "{:#?}", outcome.findings());
    assert!(outcome.met() >= FAULTS && outcome.acknowledged > 50, "{outcome:?}");
}

#[test]
fn a_start_after_a_kill_between_write_and_sync_syncs_file_and_log_before_the_first_answer() {
    let restart = syncs_before_first_answer(&binary()).unwrap();
    assert!(restart.holds(), "{restart:?}");
}

#[test]
fn a_read_that_fails_at_the_start_sets_no_sound_outbox_aside() {
    let aside = outboxes_set_aside_by_failing_reads(&binary(), 6).unwrap();
    assert!(aside.is_empty(), "{aside:?}");
}

fn binary() -> Binary {
    Binary::at(env!("CARGO_BIN_EXE_postrider"))
}
