//! The rules of `model`, explored at small bounds; `cargo xtask prove model` goes as far as minutes allow.

use testkit::explore::{Expected, Run, Scope, all};

fn chosen(wanted: impl Fn(&Run) -> bool) -> Vec<Run> {
    all(Scope::Small).into_iter().filter(wanted).collect()
}

fn come_out_as_expected(runs: &[Run]) {
    assert!(!runs.is_empty());
    for run in runs {
        let ran = run.make();
        assert!(ran.is_as_expected(), "{ran:#?}");
    }
}

#[test]
fn what_an_outbox_and_its_broker_promise_holds_in_every_state() {
    come_out_as_expected(&chosen(|run| run.expected == Expected::Holds && run.name.starts_with("outbox: ")));
}

#[test]
fn what_a_delivery_promises_holds_in_every_state() {
    come_out_as_expected(&chosen(|run| {
        run.expected == Expected::Holds && run.name.starts_with("delivery: ")
    }));
}

#[test]
fn what_a_turn_promises_holds_in_every_state() {
    come_out_as_expected(&chosen(|run| run.expected == Expected::Holds && run.name.starts_with("turn: ")));
}

#[test]
fn what_a_relay_and_its_hub_promise_holds_in_every_state() {
    come_out_as_expected(&chosen(|run| {
        run.expected == Expected::Holds && run.name.starts_with("envelope: ")
    }));
}

#[test]
fn every_rule_taken_out_is_missed_under_its_name() {
    let plants = chosen(|run| run.expected == Expected::Found);
    assert!(plants.len() >= 10);
    come_out_as_expected(&plants);
}

#[test]
fn a_habit_that_other_rules_make_up_for_breaks_nothing() {
    come_out_as_expected(&chosen(|run| run.expected == Expected::MadeUpFor));
}

#[test]
fn no_two_searches_have_one_name() {
    for scope in [Scope::Small, Scope::Full { days: 15 }] {
        let runs = all(scope);
        for (place, run) in runs.iter().enumerate() {
            assert!(runs[..place].iter().all(|other| other.name != run.name), "{} twice", run.name);
        }
    }
}
