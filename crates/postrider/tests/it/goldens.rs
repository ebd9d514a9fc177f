//! What people read: whole transcripts of the real binary, with ids, times and names of this run made equal.

use testkit::bin::Home;
use testkit::wait_for;

use super::{home, up};

/// The transcript with everything that differs from run to run replaced, and columns drawn together.
fn steady(home: &Home, text: &str) -> String {
    let person = person(home);
    let lines = text.lines().map(|line| {
        let words = line.split(' ').map(|word| steady_word(word, &person));
        let line = words.collect::<Vec<_>>().join(" ");
        let mut drawn = line.replace("    ", "  ");
        while drawn.contains("   ") {
            drawn = drawn.replace("   ", "  ");
        }
        drawn.trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn steady_word(word: &str, person: &str) -> String {
    let bare = word.trim_matches([',', '.', '"']);
    let ours = bare.len() == 26 && bare.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase());
    let tail = bare.len() == 6
        && bare.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase())
        && bare != "ANSWER";
    let print = bare.len() == 16 && bare.bytes().all(|b| b.is_ascii_hexdigit());
    let time = bare.len() == 8 && bare.bytes().filter(|b| *b == b':').count() == 2;
    let steady = match () {
        () if ours => "ID",
        () if tail => "TAIL",
        () if print => "PRINT",
        () if time => "TIME",
        () if bare == person => "jane",
        () => return word.to_owned(),
    };
    word.replace(bare, steady)
}

fn person(home: &Home) -> String {
    let status = home.cli(&["--json", "status"]).unwrap();
    let health = status.json();
    let person = health.first().and_then(|health| health["meshes"][0]["person"].as_str());
    person.unwrap_or("nobody").to_owned()
}

fn transcript(home: &Home, args: &[&str]) -> String {
    let ended = home.cli(args).unwrap();
    steady(home, &format!("{}{}", ended.stdout, ended.stderr))
}

/// Milliseconds are one digit or several.
fn unhurried(text: &str) -> String {
    let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    let mut steady: Vec<String> = Vec::with_capacity(words.len());
    for (place, word) in words.iter().enumerate() {
        let next = words.get(place + 1).map_or("", String::as_str);
        let counts = !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
        steady.push(if counts && next.starts_with("ms") { "N".to_owned() } else { word.clone() });
    }
    steady.join(" ")
}

#[test]
fn a_message_names_each_rung_it_reached_and_no_other() {
    let home = home();
    let _product = up(&home);
    assert_eq!(transcript(&home, &["send", "me", "hello"]), "queued  on this host  ID");
    let waited = transcript(&home, &["send", "me", "hello", "--wait", "delivered"]);
    assert_eq!(
        unhurried(&waited),
        "queued  on this host  ID\naccepted  by the broker, N ms  place 2 with me\ndelivered broker, TIME"
    );
}

#[test]
fn at_a_terminal_the_broker_is_waited_for_a_moment() {
    let home = home();
    let _product = up(&home);
    let shown = steady(&home, &home.terminal("send '#general' hello").unwrap());
    assert_eq!(
        unhurried(&shown),
        "queued  on this host  ID\naccepted  by the broker, N ms  place 1 in #general"
    );
}

#[test]
fn at_a_terminal_a_name_nobody_has_is_told_with_what_to_do() {
    let home = home();
    let _product = up(&home);
    let shown = steady(&home, &home.terminal("send reviwer hello").unwrap());
    assert_eq!(
        shown,
        "queued  on this host  ID\n\
         waiting  nobody in mesh home is called reviwer: tried for 1 h, then dead\n  \
         404 member_not_found. Nothing was delivered.\n\
         fix  postrider daemon outbox abort TAIL"
    );
}

#[test]
fn an_inbox_lists_the_newest_last_and_says_how_to_answer() {
    let home = home();
    let product = up(&home);
    assert_eq!(transcript(&home, &["inbox"]), "Nothing has arrived yet.\n\ntry  postrider send me \"hello\"");
    product.cli(&["send", "me", "hello", "--wait", "delivered"]).unwrap().done();
    assert_eq!(
        transcript(&home, &["inbox"]),
        "1 unread of 1, newest last\n\nTAIL  jane  to you  now  hello\n\n\
         answer  postrider reply TAIL \"...\"  listing marks nothing as read"
    );
}

#[test]
fn an_outbox_shows_what_needs_a_person_and_takes_the_tail_it_showed() {
    let home = home();
    let product = up(&home);
    product.cli(&["send", "#alerts", "one", "--mention", "nobody"]).unwrap().done();
    wait_for("a dead row", std::time::Duration::from_secs(30), || {
        let rows = home.cli(&["--quiet", "daemon", "outbox", "list", "--status", "dead"]).unwrap();
        (!rows.stdout.is_empty()).then_some(())
    })
    .unwrap();
    let listed = transcript(&home, &["daemon", "outbox", "list"]);
    assert_eq!(
        listed.lines().map(|line| line.split("needs you").next().unwrap()).collect::<Vec<_>>(),
        [
            "mesh home: 1 dead, 0 inflight, 0 pending",
            "",
            "ROW  STATE  TO  ASKED  TRIES  NEXT  LAST ANSWER",
            "TAIL  dead  #alerts  now  1  ",
            "",
            "next  postrider daemon outbox inspect TAIL"
        ]
    );
    let row = home.cli(&["--quiet", "daemon", "outbox", "list", "--status", "dead"]).unwrap().stdout;
    let tail = &row.trim()[row.trim().len() - 6..];
    let inspected = transcript(&home, &["daemon", "outbox", "inspect", tail]);
    let lines: Vec<&str> = inspected.lines().collect();
    assert_eq!(lines[0], "dead: rejected  row ID");
    assert_eq!(lines[1], "id  ID  fingerprint PRINT");
    assert_eq!(lines[2], "route  jane to #alerts, priority next, no deliver-by");
    assert!(lines[3].starts_with("asked  TIME, 1 try: "), "{inspected}");
    assert_eq!(lines[4], "body  \"one\"");
    assert_eq!(lines[5], "broker  never committed this id, and never will");
    assert_eq!(lines[6..], ["chain  none yet", "fix  postrider daemon outbox requeue --id TAIL"]);
    assert_eq!(
        transcript(&home, &["daemon", "outbox", "requeue", "--id", tail]),
        "asked  the broker: it never committed this id, and never will\n\
         aborted  TAIL, kept for the record; its id stays used\nqueued  on this host  ID"
    );
}

#[test]
fn a_status_says_what_is_live_what_waits_and_where_to_look() {
    let home = home();
    let product = up(&home);
    product.cli(&["send", "me", "hello", "--wait", "delivered"]).unwrap().done();
    let shown = transcript(&home, &["status"]);
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].starts_with("live  home, jane on ") && lines[0].ends_with(" s, 0.1.0"), "{shown}");
    assert_eq!(lines[1..3], ["queued  0 here  dead 0", "inbox  1 unread of 1"]);
    assert!(lines[3].starts_with("page  http://127.0.0.1:"), "{shown}");
    assert_eq!(lines.len(), 4, "{shown}");
}

#[test]
fn a_refusal_says_what_why_what_is_still_true_and_what_helps() {
    let home = home();
    let alone = home.cli(&["send", "me", "x"]).unwrap();
    assert_eq!(alone.code(), Some(3));
    assert_eq!(
        steady(&home, &alone.stderr),
        "stopped  no daemon answers at ~/home/daemon/sock  daemon_not_running\n  Nothing was stored.\n\
         fix  postrider up"
    );
    let product = up(&home);
    product.cli(&["send", "#alerts", "one", "--id", "ci-4127", "--wait", "accepted"]).unwrap().done();
    let reused = home.cli(&["send", "#alerts", "other words", "--id", "ci-4127"]).unwrap();
    assert_eq!((reused.code(), reused.stdout.as_str()), (Some(1), ""));
    assert_eq!(
        steady(&home, &reused.stderr),
        "refused  id ci-4127 carries another message  idempotency_key_reused\n  \
         First used TIME to #alerts, accepted. Nothing was stored or changed.\n  \
         outbox_done_fingerprint_mismatch, kept PRINT\n\
         fix  leave --id out, or choose a new one"
    );
}

#[test]
fn a_tail_names_one_message_and_a_short_one_none() {
    let home = home();
    let product = up(&home);
    let id = product.cli(&["--quiet", "send", "me", "x", "--wait", "delivered"]).unwrap().done().stdout;
    let tail = &id.trim()[id.trim().len() - 6..];
    let known = product.cli(&["--json", "explain", tail]).unwrap().done().json();
    assert_eq!(known[0]["client_message_id"], id.trim());
    assert_eq!(product.cli(&["explain", &tail[1..]]).unwrap().code(), Some(1));
    for end in ["same-tail", "other-same-tail"] {
        product.cli(&["send", "me", "x", "--id", &format!("{end}-000001")]).unwrap().done();
    }
    let several = product.cli(&["--json", "explain", "tail-000001"]).unwrap();
    assert_eq!(several.code(), Some(1), "{several:?}");
    assert!(several.stderr.contains("id_ambiguous"), "{several:?}");
}

#[test]
fn no_line_of_a_transcript_is_longer_than_eighty_columns() {
    let home = home();
    let product = up(&home);
    product.cli(&["send", "nobody-at-all", &"long ".repeat(40)]).unwrap().done();
    product.cli(&["send", "me", &"long ".repeat(40), "--wait", "delivered"]).unwrap().done();
    for line in ["status", "inbox", "daemon outbox list", "send me hello", "topic list", "mesh list"] {
        let shown = home.terminal(line).unwrap();
        for printed in shown.lines() {
            assert!(printed.chars().count() <= 80, "{line}: {printed:?}");
        }
    }
}

#[test]
fn no_command_ever_says_sent() {
    let home = home();
    let _product = up(&home);
    let says =
        |text: &str| text.split(|c: char| !c.is_alphanumeric()).any(|word| word.eq_ignore_ascii_case("sent"));
    for line in [
        vec!["send", "me", "hello"],
        vec!["send", "me", "hello", "--wait", "delivered"],
        vec!["send", "nobody-at-all", "hello", "--wait", "accepted", "--timeout", "1"],
        vec!["inbox"],
        vec!["status"],
        vec!["daemon", "outbox", "list"],
        vec!["--help"],
        vec!["send", "--help"],
    ] {
        let ended = home.cli(&line).unwrap();
        assert!(!says(&ended.stdout) && !says(&ended.stderr), "{line:?}: {ended:?}");
    }
}
