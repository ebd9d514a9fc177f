use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use testkit::redis::{Keyspace, Private};

fn ask(url: &str, command: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(url.trim_start_matches("redis://").trim_end_matches('/'))?;
    stream.write_all(format!("{command}\r\n").as_bytes())?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(answer.trim_end().to_owned())
}

#[test]
fn a_private_server_forgets_everything_at_a_restart_and_is_gone_after_drop() {
    let mut server = Private::start().unwrap();
    let url = server.url();
    assert_eq!(ask(&url, "SET spent 1").unwrap(), "+OK");
    assert_eq!(ask(&url, "EXISTS spent").unwrap(), ":1");
    server.kill9();
    assert!(ask(&url, "PING").is_err());
    server.restart().unwrap();
    assert_eq!(ask(&url, "EXISTS spent").unwrap(), ":0");
    drop(server);
    assert!(ask(&url, "PING").is_err());
}

#[test]
fn two_keyspaces_share_no_prefix() {
    let (first, second) = (Keyspace::create().unwrap(), Keyspace::create().unwrap());
    assert_ne!(first.prefix(), second.prefix());
    assert_eq!(ask(first.url(), "PING").unwrap(), "+PONG");
}
