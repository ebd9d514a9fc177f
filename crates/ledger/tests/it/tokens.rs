//! Tokens that a broker on a file has looked up: believed as long as nothing could have changed them.

use std::sync::Arc;

use futures_util::FutureExt;
use ledger::conformance::Bench;
use ledger::conformance::town::{Home, accepted, secret, text, two_homes};
use ledger::{ApiToken, Ledger, NewToken, Scopes};
use model::MemberKind;

use crate::sqlite::Sqlite;

const BEHIND_ITS_BACK: &str = "UPDATE api_token SET revoked_at = 1";

/// A ledger that has looked a token of Jane's up.
async fn looked_up(bench: &Sqlite) -> (Arc<dyn Ledger>, Home, ApiToken) {
    let (ledger, jane, _) = two_homes(bench).await;
    let scopes = Scopes { send: true, read: true, hub: false };
    let new = NewToken { hash: secret("one"), member: jane.id(), scopes };
    let token = ledger.create_token(new).await.unwrap();
    assert_eq!(ledger.resolve_token(secret("one")).await.unwrap().as_ref(), Some(&token));
    (ledger, jane, token)
}

#[tokio::test]
async fn messages_leave_a_token_as_it_was_looked_up_and_any_other_write_has_it_looked_up_again() {
    let bench = Sqlite::start().await;
    let (ledger, jane, token) = looked_up(&bench).await;
    bench.run(BEHIND_ITS_BACK).await;
    accepted(&*ledger, &jane, text("@carl", "a", "hi")).await;
    assert_eq!(ledger.resolve_token(secret("one")).await.unwrap(), Some(token));
    ledger.host_member(&"ci".parse().unwrap(), MemberKind::Service).await.unwrap();
    assert_eq!(ledger.resolve_token(secret("one")).await.unwrap(), None);
}

#[tokio::test]
async fn a_token_is_taken_back_even_if_whoever_asked_for_that_has_left() {
    let bench = Sqlite::start().await;
    let (ledger, _, token) = looked_up(&bench).await;
    // Asked, and gone before the answer.
    drop(ledger.revoke_token(token.id).now_or_never());
    // Jobs are answered in their order: after this one the engine has let go of the answer nobody waits for.
    ledger
        .mark_read(token.member.id, model::ConversationId::from_bytes([9; 16]), model::Cursor::Start)
        .await
        .unwrap();
    assert_eq!(ledger.resolve_token(secret("one")).await.unwrap(), None);
}
