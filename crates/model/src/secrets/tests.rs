use super::*;

fn pointers(body: &str) -> Vec<String> {
    scan_json(body.as_bytes(), Allowed::default()).unwrap()
}

#[test]
fn every_exact_name_is_found_in_every_spelling() {
    for name in [
        "authorization",
        "Cookie",
        "Set-Cookie",
        "password",
        "passwd",
        "passphrase",
        "secret",
        "clientSecret",
        "apiKey",
        "APIKey",
        "apikey",
        "access_token",
        "refreshToken",
        "id-token",
        "auth.token",
        "bearer",
        "privateKey",
        "credential",
        "credentials",
        "token",
        "DSN",
    ] {
        let body = serde_json::json!({"a": [{name: "x"}]}).to_string();
        assert_eq!(pointers(&body), [format!("/a/0/{name}")], "{name}");
        for harmless in ["12", "true", "null", "\"\""] {
            assert!(pointers(&format!("{{\"{name}\":{harmless}}}")).is_empty(), "{name} {harmless}");
        }
    }
}

#[test]
fn a_suspicious_ending_counts_only_with_a_long_value_without_spaces() {
    for (name, value, found) in [
        ("deploy_token", "0123456789abcdef", true),
        ("deployToken", "0123456789abcdef", true),
        ("x-signing-secret", "0123456789abcdef", true),
        ("ssh_key", "0123456789abcdef", true),
        ("db_password", "0123456789abcdef", true),
        ("deploy_token", "0123456789abcde", false),
        ("ssh_key", "a key for the front door", false),
        ("idempotency_key", "0123456789abcdef", false),
        ("cacheKey", "0123456789abcdef", false),
        ("sort_key", "0123456789abcdef", false),
        ("message_id_key", "0123456789abcdef", false),
        ("monkey", "0123456789abcdef", false),
        ("input_tokens", "0123456789abcdef", false),
    ] {
        let body = serde_json::json!({ name: value }).to_string();
        assert_eq!(!pointers(&body).is_empty(), found, "{name} {value}");
    }
}

#[test]
fn every_value_pattern_is_found_under_any_name_and_prose_about_it_is_not() {
    for secret in [
        "-----BEGIN PRIVATE KEY-----\nMIIE",
        "-----BEGIN RSA PRIVATE KEY-----",
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        "see ghp_abcdefghijklmnopqrst for it",
        "github_pat_11ABCDEFG0abcdefgh",
        "sk-proj-Abcdefghijkl0123",
        "key=sk-0123456789abcdef",
        "AKIAIOSFODNN7EXAMPLE",
        "xoxb-123456789012-abcdef",
        "Authorization: Bearer abc123DEF456ghi",
        "bearer eyabc.def-123_456",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "postgres://jane:hunter2@db/prod",
        "https://x:y@example.org",
        "https://0123456789abcdef0123@example.org",
    ] {
        assert!(looks_secret(secret), "{secret}");
        assert_eq!(pointers(&serde_json::json!({"note": secret}).to_string()), ["/note"], "{secret}");
    }
    for prose in [
        "-----BEGIN PUBLIC KEY-----",
        "the private key is in the safe",
        "task-0123456789abcdef",
        "desk-12 and risk-register-2026-11-15",
        "sk-learn-pipeline-refactor",
        "Bearer authentication is documented",
        "Bearer tokens",
        "AKIA is how they begin",
        "xoxo, Jane",
        "ssh://git@github.com/acme/x.git",
        "mailto:jane@example.org",
        "http://127.0.0.1:8000/a@b:c",
        "eyJ is base64 for {\"",
        "https://example.org/@jane:notes",
    ] {
        assert!(!looks_secret(prose), "{prose}");
    }
}

#[test]
fn a_secret_cannot_hide_behind_a_twin_an_escape_a_name_or_a_text_in_a_text() {
    for (body, place) in [
        (r#"{"password":"x","password":null}"#, "/password"),
        (r#"{"pass\u0077ord":"x"}"#, "/password"),
        (r#"{"ghp_abcdefghijklmnopqrst":1}"#, ""),
        (r#"{"credentials":{"who":"jane"}}"#, "/credentials/who"),
        (r#"{"token":["a"]}"#, "/token/0"),
        (r#"{"log":"{\"password\":\"x\"}"}"#, "/log"),
        (r#"{"a/b~c":{"secret":"x"}}"#, "/a~1b~0c/secret"),
        (r#""ghp_abcdefghijklmnopqrst""#, ""),
    ] {
        assert_eq!(pointers(body), [place], "{body}");
    }
    assert!(scan_json(b"{", Allowed::default()).is_err());
    assert!(scan_json(b"{} {}", Allowed::default()).is_err());
    assert!(scan_json("[".repeat(10_000).as_bytes(), Allowed::default()).is_err(), "depth has a bound");
}

#[test]
fn a_route_may_let_a_name_pass_but_not_a_value() {
    let allowed = ["token".to_owned()];
    let scan = |body: &str| scan_json(body.as_bytes(), Allowed(&allowed)).unwrap();
    assert!(scan(r#"{"token":"a word of a text"}"#).is_empty());
    assert_eq!(scan(r#"{"token":"ghp_abcdefghijklmnopqrst"}"#), ["/token"]);
}

#[test]
fn a_query_and_a_text_are_looked_at_too() {
    for (query, found) in [
        ("access_token=x", Some("access_token")),
        ("a=1&api%5Fkey=x", Some("api_key")),
        ("q=ghp_abcdefghijklmnopqrst", Some("q")),
        ("next=https%3A%2F%2Fa%3Ab%40c", Some("next")),
        ("ghp_abcdefghijklmnopqrst", Some("?")),
        ("limit=20&page=token", None),
        ("", None),
    ] {
        assert_eq!(scan_query(query, Allowed::default()).as_deref(), found, "{query}");
    }
    assert!(!storable_text("refused: Bearer abc123DEF456ghi").contains("abc123"));
    assert_eq!(storable_text("refused"), "refused");
}

#[test]
fn fewer_than_one_in_two_hundred_clean_bodies_is_refused() {
    let corpus = include_str!("clean_bodies.jsonl");
    let (mut bodies, mut refused, mut token_events) = (0_usize, Vec::new(), 0_usize);
    for line in corpus.lines() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        bodies += 1;
        token_events += usize::from(record["route"].as_str().unwrap().starts_with("/token-events"));
        let found = pointers(&record["body"].to_string());
        if !found.is_empty() {
            refused.push(format!("{}: {found:?}", record["route"]));
        }
    }
    assert!(bodies >= 2_000 && token_events >= 400, "{bodies} bodies, {token_events} token events");
    assert!(refused.len() * 200 < bodies, "{} of {bodies} refused: {refused:#?}", refused.len());
}

#[test]
fn a_pointer_spells_names_as_pointers_do() {
    let body = br#"{"a/b":{"c~d":{"/":[{"~/~":{"password":"x"}}]}}}"#;
    assert_eq!(scan_json(body, Allowed::default()).unwrap(), ["/a~1b/c~0d/~1/0/~0~1~0/password"]);
}
