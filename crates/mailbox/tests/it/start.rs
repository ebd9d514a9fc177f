//! Opening, facts and members.

use std::sync::Arc;

use mailbox::{Fact, InboxEpoch, Mailbox, Member, Meta, PutMemberError, SetTokenError};
use model::outbox::DedupeWindow;
use model::{MemberKind, MeshId, NodeKey, OsEntropy};

use crate::desk::{ANN, BOB, Desk, HOUR};

#[tokio::test]
async fn the_inbox_epoch_is_drawn_once_per_file() {
    let mut desk = Desk::open();
    let epoch = desk.mailbox.inbox_epoch();
    desk.crash();
    assert_eq!(desk.mailbox.inbox_epoch(), epoch);
    assert_eq!(epoch.to_string().parse::<InboxEpoch>(), Ok(epoch));
    let folder = tempfile::tempdir().unwrap();
    let other = Mailbox::open(folder.path().join("mailbox.db"), Arc::new(OsEntropy)).unwrap();
    assert_ne!(other.inbox_epoch(), epoch, "a new file is a new inbox");
    assert_eq!(other.meta().await.unwrap(), Meta::default());
    other.close().await;
}

#[tokio::test]
async fn facts_are_kept_and_a_newer_one_takes_the_place_of_an_older() {
    let mut desk = Desk::open();
    let facts = vec![
        Fact::Mesh(MeshId::from_bytes([1; 16])),
        Fact::Node("mbp-jane".parse().unwrap()),
        Fact::IssuerKey(NodeKey::from_bytes([2; 32])),
        Fact::Person(ANN),
        Fact::DedupeWindow(DedupeWindow::Days(365)),
    ];
    desk.mailbox.put_meta(facts).await.unwrap();
    desk.mailbox.put_meta(vec![Fact::DedupeWindow(DedupeWindow::Permanent)]).await.unwrap();
    desk.crash();
    let expected = Meta {
        inbox_rebuilt: false,
        mesh: Some(MeshId::from_bytes([1; 16])),
        node: Some("mbp-jane".parse().unwrap()),
        issuer_key: Some(NodeKey::from_bytes([2; 32])),
        person: Some(ANN),
        dedupe_window: Some(DedupeWindow::Permanent),
    };
    assert_eq!(desk.mailbox.meta().await.unwrap(), expected);
    desk.mailbox.put_meta(vec![Fact::DedupeWindow(DedupeWindow::Days(7))]).await.unwrap();
    assert_eq!(desk.mailbox.meta().await.unwrap().dedupe_window, Some(DedupeWindow::Days(7)));
}

#[tokio::test]
async fn a_members_name_is_never_changed_or_reused() {
    let desk = Desk::open();
    let ann = Member { id: ANN, name: "ann".parse().unwrap(), kind: MemberKind::Person };
    let bob = Member { id: BOB, name: "bob".parse().unwrap(), kind: MemberKind::Agent };
    for member in [&bob, &ann, &ann] {
        desk.mailbox.put_member(member.clone()).await.unwrap();
    }
    assert_eq!(desk.mailbox.members().await.unwrap(), [ann.clone(), bob.clone()]);
    assert_eq!(desk.mailbox.member_by_name("bob".parse().unwrap()).await.unwrap(), Some(bob.clone()));
    assert_eq!(desk.mailbox.member_by_name("carl".parse().unwrap()).await.unwrap(), None);
    let renamed = Member { name: "anne".parse().unwrap(), ..ann.clone() };
    let refused = desk.mailbox.put_member(renamed).await;
    assert!(matches!(refused, Err(PutMemberError::Differs { held }) if held == ann));
    let namesake = Member { id: model::MemberId::from_bytes([9; 16]), ..bob };
    let refused = desk.mailbox.put_member(namesake).await;
    assert!(matches!(refused, Err(PutMemberError::NameTaken { holder: BOB, .. })));
    assert_eq!(desk.mailbox.members().await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_mailbox_opens_inside_a_task_that_has_used_up_its_turn() {
    while tokio::task::coop::has_budget_remaining() {
        tokio::task::coop::consume_budget().await;
    }
    Desk::open();
}

#[tokio::test]
async fn a_members_new_token_counts_at_once_and_its_old_one_for_a_moment() {
    let mut desk = Desk::open();
    let bob = Member { id: BOB, name: "bob".parse().unwrap(), kind: MemberKind::Agent };
    let unknown = desk.mailbox.set_token(BOB, [1; 32], desk.now).await;
    assert!(matches!(unknown, Err(SetTokenError::UnknownMember(BOB))));
    desk.mailbox.put_member(bob.clone()).await.unwrap();
    desk.mailbox.set_token(BOB, [1; 32], desk.now + HOUR).await.unwrap();
    desk.mailbox.set_token(BOB, [2; 32], desk.now + HOUR).await.unwrap();
    let whose = |token: u8, at| desk.mailbox.member_by_token([token; 32], at);
    assert_eq!(whose(2, desk.now).await.unwrap(), Some(bob.clone()));
    assert_eq!(whose(1, desk.now).await.unwrap(), Some(bob.clone()));
    assert_eq!(whose(1, desk.now + HOUR).await.unwrap(), None);
    assert_eq!(whose(9, desk.now).await.unwrap(), None);
    desk.mailbox.set_token(BOB, [3; 32], desk.now + HOUR).await.unwrap();
    desk.crash();
    assert_eq!(
        desk.mailbox.member_by_token([1; 32], desk.now).await.unwrap(),
        None,
        "only one old token lives"
    );
    assert_eq!(desk.mailbox.member_by_token([2; 32], desk.now).await.unwrap(), Some(bob));
}
