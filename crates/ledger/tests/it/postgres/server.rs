//! Settings, schema, lost connections, cancelled callers.

use ledger::{POSTGRES_SCHEMA, PostgresError, PostgresLedger, PostgresOpenError};
use model::OsEntropy;
use std::sync::Arc;

use testkit::postgres::Database;

use super::{client, database, open};

/// Tables, columns, constraints, indexes and views as text, one a line.
const DUMP: &str = "
    SELECT format('column %s.%s %s null:%s default:%s collation:%s', table_name, column_name, data_type, is_nullable,
        column_default, collation_name)
    FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> 'schema_version'
    UNION ALL
    SELECT format('constraint %s %s', conrelid::regclass, pg_get_constraintdef(oid)) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace AND conrelid <> 'schema_version'::regclass
    UNION ALL
    SELECT format('index %s', indexdef) FROM pg_indexes WHERE schemaname = 'public' AND tablename <> 'schema_version'
    UNION ALL
    SELECT format('view %s %s', viewname, definition) FROM pg_views WHERE schemaname = 'public'
    ORDER BY 1";

#[tokio::test]
async fn the_steps_add_up_to_the_checked_in_schema() {
    let (steps, sum) = (database(), database());
    drop(open(&steps).await);
    let (steps, sum) = (client(&steps).await, client(&sum).await);
    sum.batch_execute("CREATE TABLE schema_version (number INTEGER)").await.unwrap();
    sum.batch_execute(POSTGRES_SCHEMA).await.unwrap();
    let dump = async |client: &tokio_postgres::Client| -> Vec<String> {
        client.query(DUMP, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
    };
    assert_eq!(dump(&steps).await, dump(&sum).await);
}

#[tokio::test]
async fn a_server_that_does_not_sync_its_commits_is_refused() {
    let database = database();
    let name = database.url().rsplit('/').next().unwrap().to_owned();
    let admin = client(&database).await;
    admin.batch_execute(&format!("ALTER DATABASE {name} SET synchronous_commit = off")).await.unwrap();
    let refused = PostgresLedger::open(&database.url(), Arc::new(OsEntropy)).await.err().unwrap();
    assert!(refused.to_string().contains("synchronous_commit is off"), "{refused}");
    admin.batch_execute(&format!("ALTER DATABASE {name} SET synchronous_commit = on")).await.unwrap();
    drop(open(&database).await);
}

#[tokio::test]
async fn a_newer_a_changed_and_a_foreign_database_are_refused() {
    let newer = database();
    drop(open(&newer).await);
    let insert = "INSERT INTO schema_version VALUES (99, 'later', '')";
    client(&newer).await.batch_execute(insert).await.unwrap();
    let refused = PostgresLedger::open(&newer.url(), Arc::new(OsEntropy)).await.err().unwrap();
    assert!(matches!(refused, PostgresOpenError::NewerSchema { found: 99, .. }), "{refused}");
    let changed = database();
    drop(open(&changed).await);
    let update = "UPDATE schema_version SET checksum = 'x' WHERE number = 1";
    client(&changed).await.batch_execute(update).await.unwrap();
    let refused = PostgresLedger::open(&changed.url(), Arc::new(OsEntropy)).await.err().unwrap();
    assert!(matches!(refused, PostgresOpenError::ChangedMigration { number: 1 }), "{refused}");
    let foreign = database();
    client(&foreign).await.batch_execute("CREATE TABLE theirs (x INTEGER)").await.unwrap();
    let refused = PostgresLedger::open(&foreign.url(), Arc::new(OsEntropy)).await.err().unwrap();
    assert!(matches!(refused, PostgresOpenError::Foreign), "{refused}");
}

#[tokio::test]
async fn nobody_there_is_said_so() {
    let port = testkit::port::free().unwrap();
    let url = format!("postgres://postgres@127.0.0.1:{port}/none");
    let refused = PostgresLedger::open(&url, Arc::new(OsEntropy)).await.err().unwrap();
    let unreachable = matches!(&refused, PostgresOpenError::Server(PostgresError::Unreachable { .. }));
    assert!(unreachable, "{refused}");
    let malformed =
        PostgresLedger::open("postgres://localhost:many/x", Arc::new(OsEntropy)).await.err().unwrap();
    assert!(matches!(malformed, PostgresOpenError::Address(_)), "{malformed}");
}

/// A plan lives as long as its connection: one made while the tables were empty must do when they are not.
#[tokio::test]
async fn an_id_is_looked_up_by_its_whole_key_in_a_plan_made_over_empty_tables() {
    let database = database();
    drop(open(&database).await);
    let plan =
        plan(&database, include_str!("../../../src/postgres/sql/accept_known.sql"), "'{}', '{}'").await;
    let by_key = |line: &String| line.contains("(sender_member_id = member.number) AND (mesh = 1)");
    assert!(plan.iter().any(by_key), "{plan:#?}");
}

/// How a session of ours would run a statement, whatever its values.
pub async fn plan(database: &Database, sql: &str, values: &str) -> Vec<String> {
    let client = client(database).await;
    client.batch_execute(include_str!("../../../src/postgres/sql/session.sql")).await.unwrap();
    client.batch_execute(&format!("PREPARE asked AS {sql}")).await.unwrap();
    let told = client.simple_query(&format!("EXPLAIN (COSTS OFF) EXECUTE asked ({values})")).await.unwrap();
    let line = |message: &tokio_postgres::SimpleQueryMessage| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    };
    told.iter().filter_map(line).collect()
}
