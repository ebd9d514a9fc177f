//! Ten thousand secrets, and not one byte of them on the disk.

use http::Method;
use serde_json::{Value, json};
use testkit::seeded::Seeded;

use crate::stage::Stage;
use crate::upstream::Fault;

const CANARIES: usize = 10_000;
const NAMES: &[&str] = &[
    "authorization",
    "cookie",
    "set_cookie",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "client_secret",
    "api_key",
    "apikey",
    "access_token",
    "refresh_token",
    "id_token",
    "auth_token",
    "bearer",
    "private_key",
    "credential",
    "credentials",
    "token",
    "dsn",
    "deploy_token",
    "signing_secret",
    "ssh_key",
    "db_password",
    "apiKey",
    "X-Api-Key",
];

fn letters(seeded: &mut Seeded, count: usize) -> String {
    const SET: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    (0..count).map(|_| char::from(SET[seeded.index(SET.len())])).collect()
}

/// A secret that is known by its value, with the part to look for.
fn patterned(seeded: &mut Seeded) -> (String, String) {
    let core = format!("CANARY7{}", letters(seeded, 20));
    let text = match seeded.below(9) {
        0 => format!("-----BEGIN RSA PRIVATE KEY-----\n{core}\n-----END RSA PRIVATE KEY-----"),
        1 => format!("ghp_{core}"),
        2 => format!("github_pat_{core}"),
        3 => format!("sk-{core}"),
        4 => format!("AKIA{}", core.to_ascii_uppercase()),
        5 => format!("xoxb-{core}"),
        6 => format!("Bearer {core}"),
        7 => format!("eyJ{core}.eyJ{core}.{core}"),
        _ => format!("postgres://jane:{core}@db.example.org/x"),
    };
    (text, core)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_byte_of_ten_thousand_secrets_reaches_the_outbox_its_log_the_journal_or_an_export() {
    let stage = Stage::with(|config| config.rows_max = 100_000).await;
    let journal = stage.folder.path().join("journal");
    // As `POSTRIDER_LOG=debug` would have it, and the relay's own words all of them.
    let told = tracing_subscriber::EnvFilter::new("debug,relay=trace,mailbox=trace,net=trace,sqlite=trace");
    let lines = std::sync::Arc::new(std::fs::File::create(&journal).unwrap());
    tracing_subscriber::fmt().with_env_filter(told).with_ansi(false).with_writer(lines).init();
    let mut seeded = Seeded::new(11);
    let mut answers = [0_usize; 2];
    stage.upstream.leave().await;
    for place in 0..CANARIES {
        let (text, core) = patterned(&mut seeded);
        let named = format!("CANARY7{}", letters(&mut seeded, 20));
        let name = NAMES[seeded.index(NAMES.len())];
        let path;
        let mut headers: Vec<(&str, &str)> = Vec::new();
        let header = text.replace('\n', " ");
        let (at, body): (&str, Value) = match place % 8 {
            0 => ("/progress/", json!({name: named})),
            1 => ("/progress/", json!({"a": [{"b": {name: named}}]})),
            2 => ("/messages/", json!({"body": format!("see {text} there")})),
            3 => ("/messages/", json!({"log": json!({"deep": {name: named}}).to_string()})),
            4 => {
                path = format!("/progress/?{name}={named}");
                (path.as_str(), json!({}))
            }
            5 => {
                headers.push(("authorization", &header));
                ("/progress/", json!({}))
            }
            6 => {
                headers.push(("x-note", &header));
                ("/progress/", json!({}))
            }
            _ => {
                headers.push(("if-match", &header));
                ("/tasks/1", json!({"n": core}))
            }
        };
        let method = if at == "/tasks/1" { Method::PATCH } else { Method::POST };
        let body = if at == "/tasks/1" { json!({"n": 1}) } else { body };
        let told = stage.call(method, at, &headers, &body.to_string()).await;
        assert!(matches!(told.status, 422 | 503), "{place}: {told:?} {at} {headers:?} {body}");
        answers[usize::from(told.status == 503)] += 1;
        assert!(!told.body.to_string().contains("CANARY7"), "no value in a refusal");
    }
    assert!(answers[0] > CANARIES / 2, "{answers:?}");
    for secret in ["token=CANARY7abcdefghijklmnop", "q=ghp_CANARY7abcdefghijklmnop"] {
        let read = stage.call(Method::GET, &format!("/progress/?{secret}"), &[], "").await;
        assert_eq!(read.status, 503);
    }
    // Clean neighbours are stored, and the upstream's own words with secrets in them are not.
    for place in 0..50 {
        stage.post("/progress/", &format!("clean-{place}"), &json!({"note": place}).to_string()).await;
    }
    stage.upstream.come_back().await;
    stage.upstream.set(Fault::Leaky);
    let status = stage.drained().await;
    assert_eq!(status["rejected"], 50, "each was answered with a secret in the upstream's words");
    let export = stage.operate(Method::GET, "/envelopes?limit=1000&bodies=true", "").await.body.to_string();
    assert!(export.contains("clean-7") && !export.contains("CANARY7"));
    let said = std::fs::read_to_string(&journal).unwrap();
    assert!(said.contains("a read did not reach the upstream"), "the journal is listened to: {said}");
    let mut looked = 0;
    for entry in std::fs::read_dir(stage.folder.path()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        looked += bytes.len();
        assert!(!bytes.windows(7).any(|window| window.eq_ignore_ascii_case(b"CANARY7")));
    }
    assert!(looked > 10_000, "database and log were read: {looked} bytes");
}
