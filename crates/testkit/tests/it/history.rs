use std::io::Write;
use testkit::history::sample::{Plant, Sample};
use testkit::history::{Act, Broken, Event, Outcome, Recorder, check, read, read_folder};

fn send(proc: &str, id: &str, outcome: Outcome) -> Event {
    let act = Act::Send { sender: proc.to_owned(), readers: Vec::new() };
    event(proc, id, "#general", outcome, act)
}

fn render(reader: &str, sender: &str, id: &str, seq: u64) -> Event {
    let act = Act::Render { sender: sender.to_owned(), seq, cursor: format!("c{seq}") };
    event(reader, id, "conv", Outcome::Ok, act)
}

fn receive(reader: &str, sender: &str, id: &str, seq: u64) -> Event {
    let act = Act::Receive { sender: sender.to_owned(), seq, cursor: format!("c{seq}") };
    event(reader, id, "conv", Outcome::Ok, act)
}

fn listed(sender: &str, id: &str, state: &str, cause: &str) -> Event {
    let (sender, state, cause) = (sender.to_owned(), state.to_owned(), cause.to_owned());
    event("operator", id, "", Outcome::Ok, Act::Listed { sender, state, cause })
}

fn event(proc: &str, id: &str, conv: &str, outcome: Outcome, act: Act) -> Event {
    let (proc, id, conv) = (proc.to_owned(), id.to_owned(), Some(conv.to_owned()));
    Event { t_mono: 0, proc, id, fp: None, conv, outcome, act }
}

/// Invoke and Ok, one after the other.
fn sent(proc: &str, ids: &[&str]) -> Vec<Event> {
    ids.iter().flat_map(|id| [send(proc, id, Outcome::Invoke), send(proc, id, Outcome::Ok)]).collect()
}

fn words(events: &[Event]) -> Vec<String> {
    check(events).broken.iter().map(Broken::to_string).collect()
}

fn all(parts: &[&[Event]]) -> Vec<Event> {
    parts.concat()
}

#[test]
fn what_was_acknowledged_and_is_nowhere_is_lost() {
    let verdict = check(&sent("ann", &["m1"]));
    assert_eq!((verdict.acked, verdict.lost(), verdict.doubled()), (1, 1, 0));
    assert_eq!(words(&sent("ann", &["m1"])), ["lost: ann/m1 was acknowledged and is nowhere"]);
}

#[test]
fn a_send_nobody_answered_may_be_there_or_not() {
    for ending in [None, Some(Outcome::Info)] {
        let mut events = vec![send("ann", "m1", Outcome::Invoke)];
        events.extend(ending.map(|ending| send("ann", "m1", ending)));
        assert_eq!(check(&events).indeterminate, 1);
        assert!(check(&events).holds());
        events.push(render("eve", "ann", "m1", 1));
        assert!(check(&events).holds());
    }
}

#[test]
fn only_a_named_terminal_state_with_a_cause_accounts_for_a_message() {
    for (state, cause, holds) in [
        ("expired", "deliver_by", true),
        ("dead", "", false),
        ("pending", "waiting", false),
        ("done", "ok", false),
    ] {
        let events = all(&[&sent("ann", &["m1"]), &[listed("ann", "m1", state, cause)]]);
        assert_eq!(check(&events).holds(), holds, "{state} {cause}");
    }
}

#[test]
fn an_id_belongs_to_its_sender() {
    let both = all(&[&sent("ann", &["m1"]), &sent("bob", &["m1"])]);
    let seen = all(&[&both, &[render("eve", "ann", "m1", 1), render("eve", "bob", "m1", 2)]]);
    assert!(check(&seen).holds());
    let one = all(&[&both, &[render("eve", "ann", "m1", 1)]]);
    assert_eq!(words(&one), ["lost: bob/m1 was acknowledged and is nowhere"]);
}

#[test]
fn a_message_that_reached_one_of_two_readers_is_lost_to_the_other() {
    let mut events = sent("ann", &["m1"]);
    for event in &mut events {
        event.act = Act::Send { sender: "ann".into(), readers: vec!["eve".into(), "fay".into()] };
    }
    events.push(render("eve", "ann", "m1", 1));
    assert_eq!(words(&events), ["lost: ann/m1 never reached fay"]);
}

#[test]
fn a_row_shown_twice_is_doubled_and_so_is_a_message_with_two_places() {
    let sent = sent("ann", &["m1"]);
    let again = all(&[&sent, &[render("eve", "ann", "m1", 1), render("eve", "ann", "m1", 1)]]);
    assert_eq!(words(&again), ["doubled: eve saw ann/m1 2 times"]);
    let placed = all(&[&sent, &[render("eve", "ann", "m1", 1), render("fay", "ann", "m1", 2)]]);
    assert_eq!(words(&placed), ["doubled: ann/m1 stands at conv:1 and at conv:2"]);
    assert_eq!(check(&placed).doubled(), 1);
}

#[test]
fn a_reader_of_the_log_may_skip_nothing_and_an_inbox_may() {
    let sent = sent("ann", &["m1", "m2", "m3"]);
    let view =
        |see: fn(&str, &str, &str, u64) -> Event| [see("eve", "ann", "m1", 1), see("eve", "ann", "m3", 3)];
    let other = [render("fay", "ann", "m1", 1), render("fay", "ann", "m2", 2), render("fay", "ann", "m3", 3)];
    assert_eq!(words(&all(&[&sent, &other, &view(render)])), ["gap: eve went from conv:1 to 3"]);
    assert_eq!(words(&all(&[&sent, &other, &view(receive)])), Vec::<String>::new());
}

#[test]
fn an_inbox_that_goes_back_is_out_of_order() {
    let events = all(&[
        &sent("ann", &["m1", "m2"]),
        &[receive("eve", "ann", "m2", 2), receive("eve", "ann", "m1", 1)],
    ]);
    assert_eq!(words(&events), ["backwards: eve went from conv:2 to 1"]);
}

#[test]
fn two_messages_cannot_stand_at_one_place() {
    let events =
        all(&[&sent("ann", &["m1", "m2"]), &[render("eve", "ann", "m1", 1), render("fay", "ann", "m2", 1)]]);
    assert_eq!(words(&events), ["shared place: conv:1 holds ann/m1 and ann/m2"]);
}

#[test]
fn order_binds_a_sender_who_waited_and_only_that_one() {
    let rows = [render("eve", "ann", "m2", 1), render("eve", "ann", "m1", 2)];
    let waited = all(&[&sent("ann", &["m1", "m2"]), &rows]);
    assert_eq!(
        words(&waited),
        ["overtaken: ann/m2 was sent after ann/m1 was acknowledged, and stands before it"]
    );
    let calls = [("m1", Outcome::Invoke), ("m2", Outcome::Invoke), ("m1", Outcome::Ok), ("m2", Outcome::Ok)];
    let together: Vec<Event> = calls.iter().map(|(id, outcome)| send("ann", id, *outcome)).collect();
    assert!(check(&all(&[&together, &rows])).holds());
}

#[test]
fn a_retry_does_not_bind_the_place_its_first_call_took() {
    let calls = [
        ("m2", Outcome::Invoke),
        ("m2", Outcome::Info),
        ("m1", Outcome::Invoke),
        ("m1", Outcome::Ok),
        ("m2", Outcome::Invoke),
        ("m2", Outcome::Ok),
    ];
    let calls: Vec<Event> = calls.iter().map(|(id, outcome)| send("ann", id, *outcome)).collect();
    let rows = [render("eve", "ann", "m2", 1), render("eve", "ann", "m1", 2)];
    assert!(check(&all(&[&calls, &rows])).holds());
}

#[test]
fn a_message_nobody_sent_or_everybody_refused_is_forged() {
    assert_eq!(words(&[render("eve", "ann", "m9", 1)]), ["forged: eve saw ann/m9, which nobody sent"]);
    let refused =
        [send("ann", "m1", Outcome::Invoke), send("ann", "m1", Outcome::Fail), render("eve", "ann", "m1", 1)];
    assert_eq!(words(&refused), ["forged: eve saw ann/m1, which nobody sent"]);
    assert_eq!(check(&refused).refused, 1);
}

#[test]
fn a_refused_second_fingerprint_is_legal_and_an_accepted_one_is_not() {
    let with = |fp: &str, outcome| Event { fp: Some(fp.to_owned()), ..send("ann", "m1", outcome) };
    let first = [with("f1", Outcome::Invoke), with("f1", Outcome::Ok), render("eve", "ann", "m1", 1)];
    let refused = all(&[&first, &[with("f2", Outcome::Invoke), with("f2", Outcome::Fail)]]);
    assert!(check(&refused).holds());
    let accepted = all(&[&first, &[with("f2", Outcome::Invoke), with("f2", Outcome::Ok)]]);
    assert_eq!(words(&accepted), ["rebound: ann/m1 names f1 and f2"]);
}

#[test]
fn legal_histories_pass_and_every_planted_bug_is_found() {
    for seed in 0..20 {
        let legal = Sample::legal(seed, 400);
        let clean = check(&legal.clone().with(None).unwrap());
        assert_eq!(clean.broken, [], "seed {seed}");
        assert!(clean.acked > 0 && clean.indeterminate > 0 && clean.refused > 0, "seed {seed}: {clean:?}");
        for plant in Plant::ALL {
            let verdict = check(&legal.clone().with(Some(plant)).unwrap());
            let found = verdict.broken.iter().any(|broken| plant.is_named_by(broken));
            assert!(found, "seed {seed}: {} was not found in {:?}", plant.name(), verdict.broken);
        }
    }
}

#[test]
fn a_line_has_the_fields_of_the_format_and_reads_back() {
    let event = Event { t_mono: 5, fp: Some("f".into()), ..render("eve", "ann", "m1", 3) };
    let line = serde_json::to_string(&event).unwrap();
    let expected = r##"{"t_mono":5,"proc":"eve","id":"m1","fp":"f","conv":"conv","type":"ok","op":"render","value":{"sender":"ann","seq":3,"cursor":"c3"}}"##;
    assert_eq!(line, expected);
    assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
}

#[test]
fn a_recorder_appends_after_its_earlier_incarnation_and_a_torn_last_line_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let act = || Act::Send { sender: "ann".into(), readers: Vec::new() };
    for outcome in [Outcome::Invoke, Outcome::Ok] {
        let recorder = Recorder::open(folder.path(), "ann").unwrap();
        recorder.note(outcome, "m1", None, Some("@bob"), act()).unwrap();
    }
    let path = folder.path().join("ann.jsonl");
    let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(br#"{"t_mono":9,"pro"#).unwrap();
    let events = read_folder(folder.path()).unwrap();
    assert_eq!(events.iter().map(|event| event.outcome).collect::<Vec<_>>(), [Outcome::Invoke, Outcome::Ok]);
    file.write_all(b"\n").unwrap();
    let error = read(&path).unwrap_err().to_string();
    assert!(error.contains("ann.jsonl line 3"), "{error}");
}
