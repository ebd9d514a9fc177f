use std::net::TcpStream;
use testkit::postgres::{Database, Private};

fn address(url: &str) -> &str {
    url.split('@').nth(1).unwrap().split('/').next().unwrap()
}

#[test]
fn a_private_server_keeps_what_it_committed_through_kill9_and_is_gone_after_drop() {
    let mut server = Private::start().unwrap();
    server.execute("postgres", "CREATE TABLE kept(n int); INSERT INTO kept VALUES (42)").unwrap();
    server.kill9();
    assert!(server.execute("postgres", "SELECT 1").is_err());
    server.restart().unwrap();
    // Division by zero unless the row is there: psql needs no answer parsed.
    server.execute("postgres", "SELECT 1 / (SELECT count(*) FROM kept WHERE n = 42)").unwrap();
    assert!(server.execute("postgres", "SELECT 1 / (SELECT count(*) FROM kept WHERE n = 43)").is_err());
    let url = server.url();
    TcpStream::connect(address(&url)).unwrap();
    drop(server);
    assert!(TcpStream::connect(address(&url)).is_err());
}

#[test]
fn the_server_is_as_durable_as_the_product_demands() {
    let server = Private::start().unwrap();
    for setting in ["fsync", "synchronous_commit", "full_page_writes"] {
        let sql = format!("SELECT 1 / (current_setting('{setting}') = 'on')::int");
        server.execute("postgres", &sql).unwrap();
    }
}

#[test]
fn two_databases_have_two_names() {
    let (first, second) = (Database::create().unwrap(), Database::create().unwrap());
    assert_ne!(first.url(), second.url());
}
