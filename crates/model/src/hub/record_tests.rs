use super::*;

fn fields(json: &str) -> Map<String, Value> {
    serde_json::from_str(json).unwrap()
}

fn present(version: u64, body: &str) -> Standing {
    Standing::Present(Held { version, updated_at: Timestamp::from_micros(5), body: body.into() })
}

fn body(judged: &Judged) -> &str {
    match judged {
        Judged::Make { body, .. } | Judged::Change { body, .. } => std::str::from_utf8(body).unwrap(),
        Judged::Delete { .. } => "",
    }
}

const OPEN: &str = r#"{"status":"open","title":"t"}"#;

#[test]
fn each_change_meets_each_standing_as_the_table_says() {
    let gone = || Standing::Deleted { version: 3 };
    let there = || present(4, OPEN);
    let create = Change::Create(fields(r#"{"a":1}"#));
    let replace = Change::Replace(fields(r#"{"a":1}"#));
    let patch = Change::Patch(fields(r#"{"a":1}"#));
    let resolve = Change::Resolve(fields(r#"{"status":"resolved"}"#));
    let conflict = |current| Err(Refusal::Conflict { current });
    let make = |version| Ok(("make", version));
    let next = |version| Ok(("change", version));
    for (change, standing, expected) in [
        (&create, Standing::Absent, make(1)),
        (&create, gone(), make(4)),
        (&create, there(), conflict(Some(4))),
        (&replace, Standing::Absent, make(1)),
        (&replace, gone(), make(4)),
        (&replace, there(), next(5)),
        (&patch, Standing::Absent, Err(Refusal::NotFound)),
        (&patch, gone(), Err(Refusal::NotFound)),
        (&patch, there(), next(5)),
        (&resolve, Standing::Absent, Err(Refusal::NotFound)),
        (&resolve, gone(), Err(Refusal::NotFound)),
        (&resolve, there(), next(5)),
        (&resolve, present(4, r#"{"status":"resolved"}"#), conflict(Some(4))),
        (&Change::Delete, Standing::Absent, Err(Refusal::NotFound)),
        (&Change::Delete, gone(), Err(Refusal::NotFound)),
        (&Change::Delete, there(), Ok(("delete", 5))),
    ] {
        let judged = judge(change, &Precondition::None, &standing).map(|judged| match judged {
            Judged::Make { version, .. } => ("make", version),
            Judged::Change { version, .. } => ("change", version),
            Judged::Delete { version } => ("delete", version),
        });
        assert_eq!(judged, expected, "{change:?} on {standing:?}");
    }
}

#[test]
fn a_record_that_was_seen_and_is_gone_has_changed() {
    let seen = Precondition::Versions(vec![2]);
    let patch = Change::Patch(fields("{}"));
    let gone = judge(&patch, &seen, &Standing::Deleted { version: 3 });
    assert_eq!(gone, Err(Refusal::Conflict { current: Some(3) }));
    assert_eq!(judge(&patch, &seen, &Standing::Absent), Err(Refusal::NotFound));
    assert_eq!(judge(&Change::Delete, &seen, &present(3, OPEN)), Err(Refusal::Conflict { current: Some(3) }));
    assert_eq!(judge(&Change::Delete, &seen, &present(2, OPEN)), Ok(Judged::Delete { version: 3 }));
}

#[test]
fn a_patch_changes_what_it_names_and_null_takes_away() {
    let standing = present(1, r#"{"a":1,"meta":{"x":1,"y":2},"z":[1,2]}"#);
    let patch =
        Change::Patch(fields(r#"{"a":null,"meta":{"x":null,"w":{"v":null,"u":1}},"z":[3],"new":"n"}"#));
    let judged = judge(&patch, &Precondition::None, &standing).unwrap();
    assert_eq!(body(&judged), r#"{"meta":{"w":{"u":1},"y":2},"new":"n","z":[3]}"#);
}

#[test]
fn a_record_grown_over_its_bound_is_refused() {
    let half = "x".repeat(limits::BODY_BYTES_MAX / 2);
    let standing = present(1, &format!(r#"{{"a":"{half}"}}"#));
    let patch = Change::Patch(fields(&format!(r#"{{"b":"{half}"}}"#)));
    assert_eq!(judge(&patch, &Precondition::None, &standing), Err(Refusal::TooLarge));
}

#[test]
fn kinds_have_their_own_numbers_and_words() {
    for kind in RecordKind::ALL {
        assert_eq!(RecordKind::from_code(kind.code().into()), Some(kind));
        assert!(RecordKind::ALL.iter().filter(|other| other.word() == kind.word()).count() == 1);
    }
    assert_eq!(RecordKind::from_code(0), None);
}

#[test]
fn an_id_fits_an_address_and_leads_nowhere_else() {
    for good in ["t-1", "A.b_c:d", "..x"] {
        assert_eq!(good.parse::<RecordId>().unwrap().as_str(), good);
    }
    for bad in ["", ".", "..", "a/b", "a b", "é", &"x".repeat(129)] {
        assert!(bad.parse::<RecordId>().is_err(), "{bad}");
    }
}
