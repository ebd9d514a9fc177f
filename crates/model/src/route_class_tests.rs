use super::*;

fn class(method: &str, path: &str) -> (RouteClass, String) {
    let table = RouteTable::built_in();
    let path = NormalPath::parse(path).unwrap();
    match table.find(method, &path) {
        Some(matched) => {
            (matched.route.class, matched.resource.map(|key| key.to_string()).unwrap_or_default())
        }
        None => (RouteClass::Online, String::new()),
    }
}

#[test]
fn every_listed_route_has_its_class_and_its_order() {
    use RouteClass::{Append, Online, Replace};
    for (method, path, expected, order) in [
        ("POST", "/progress/", Append, ""),
        ("POST", "/progress", Append, ""),
        ("POST", "/messages/", Append, ""),
        ("PATCH", "/messages/m1/read", Append, "message:m1"),
        ("POST", "/token-events/", Append, ""),
        ("POST", "/token-events/upsert", Append, ""),
        ("POST", "/decisions/", Append, ""),
        ("PATCH", "/tasks/T-88", Replace, "task:T-88"),
        ("POST", "/tasks/bulk-status-sync", Replace, "task:*"),
        ("PATCH", "/decisions/d1", Replace, "decision:d1"),
        ("POST", "/decisions/d1/resolve", Replace, "decision:d1"),
        ("PATCH", "/workplans/w1", Replace, "workplan:w1"),
        ("PATCH", "/workstreams/w1", Replace, "workplan:w1"),
        ("DELETE", "/tasks/T-88", Online, "task:T-88"),
        ("DELETE", "/progress/p1", Online, ""),
        ("PUT", "/tasks/T-88", Online, ""),
        ("POST", "/admin/bootstrap", Online, ""),
        ("POST", "/repos/sync", Online, ""),
        ("POST", "/progress/extra", Online, ""),
    ] {
        assert_eq!(class(method, path), (expected, order.to_owned()), "{method} {path}");
    }
}

#[test]
fn a_path_is_matched_as_decoded_once_and_without_empty_segments() {
    for (path, normal) in [
        ("/tasks/T-88", "/tasks/T-88"),
        ("//tasks///T-88/", "/tasks/T-88"),
        ("/t%61sks/T%2D88", "/tasks/T-88"),
        ("/", "/"),
        ("/a%20b", "/a b"),
        ("/100%25", "/100%"),
    ] {
        assert_eq!(NormalPath::parse(path).unwrap().to_string(), normal);
    }
}

#[test]
fn a_path_that_two_servers_could_read_differently_is_refused() {
    for (path, refused) in [
        ("/tasks/../admin", PathRefused::Climbs),
        ("/tasks/%2e%2E/admin", PathRefused::Climbs),
        ("/tasks/./x", PathRefused::Climbs),
        ("/tasks/%252e%252e/admin", PathRefused::Encoding),
        ("/tasks/%2541", PathRefused::Encoding),
        ("/tasks/%", PathRefused::Encoding),
        ("/tasks/%4", PathRefused::Encoding),
        ("/tasks/%zz", PathRefused::Encoding),
        ("/tasks/%ff", PathRefused::Encoding),
        ("/tasks/a%2Fb", PathRefused::Hidden),
        ("/tasks/a%5Cb", PathRefused::Hidden),
        ("/tasks/a%00b", PathRefused::Hidden),
        ("/tasks/a%0Ab", PathRefused::Hidden),
    ] {
        assert_eq!(NormalPath::parse(path), Err(refused), "{path}");
    }
}

#[test]
fn a_barrier_overlaps_every_resource_of_its_kind_and_nothing_else() {
    let (one, other) = (OrderKey::new("task", "1"), OrderKey::new("task", "2"));
    let (all, plan) = (OrderKey::barrier("task"), OrderKey::new("workplan", "1"));
    for (a, b, overlaps) in [
        (&one, &one, true),
        (&one, &other, false),
        (&one, &all, true),
        (&all, &other, true),
        (&all, &all, true),
        (&all, &plan, false),
        (&one, &plan, false),
    ] {
        assert_eq!(a.overlaps(b), overlaps, "{a} {b}");
        assert_eq!(b.overlaps(a), overlaps, "{b} {a}");
    }
    assert!(!OrderKey::new("task", "*").is_barrier(), "a resource cannot name itself a barrier");
    assert_eq!(OrderKey::parse("task:*"), Some(all));
}

#[test]
fn a_line_that_could_not_work_is_refused_when_the_table_is_made() {
    let good = Route {
        method: "PATCH".into(),
        pattern: "/notes/{id}".into(),
        class: RouteClass::Replace,
        order: Some("note:{id}".into()),
        barrier: false,
        gives_id: false,
        allowed_fields: Vec::new(),
    };
    assert!(RouteTable::of(vec![good.clone()]).is_ok());
    for bad in [
        Route { method: "GET".into(), ..good.clone() },
        Route { method: "DELETE".into(), ..good.clone() },
        Route { pattern: "notes".into(), ..good.clone() },
        Route { order: Some("note".into()), ..good.clone() },
        Route { order: Some("note:{other}".into()), ..good.clone() },
        Route { order: Some(":{id}".into()), ..good.clone() },
        Route { order: Some("note:{id}".into()), barrier: true, ..good.clone() },
    ] {
        assert!(RouteTable::of(vec![bad.clone()]).is_err(), "{bad:?}");
    }
}

#[test]
fn a_reader_sees_the_pending_writes_of_what_it_reads() {
    let table = RouteTable::built_in();
    let key = |path| table.resource_of(&NormalPath::parse(path).unwrap()).map(|key| key.to_string());
    assert_eq!(key("/tasks/T-1"), Some("task:T-1".into()));
    assert_eq!(key("/workstreams/w"), Some("workplan:w".into()));
    assert_eq!(key("/progress/"), None);
}
