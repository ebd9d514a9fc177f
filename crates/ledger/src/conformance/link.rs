//! Opening a link: a lost inbox, a restored ledger.

use model::{ClientMessageId, MemberId, MemberKind, MessageId};

use super::Bench;
use super::town::*;
use crate::*;

pub async fn a_link_opens_with_the_members_at_home_and_an_unknown_one_does_not(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    ledger.register_member(&jane.link, &member_name("bot"), MemberKind::Agent).await.unwrap();
    let opened = ledger.open_link(opening(&jane.link, "e1")).await.unwrap();
    let names: Vec<_> = opened.members.iter().map(|member| member.name.as_str()).collect();
    assert_eq!((names, opened.restored, opened.mesh.slug.as_str()), (vec!["jane", "bot"], false, "home"));
    let stranger = Link { node: node("stranger"), epoch: 1 };
    let refused = ledger.open_link(opening(&stranger, "e1")).await.unwrap_err();
    assert!(matches!(refused, LinkError::Refused(LinkRefused::UnknownNode)), "{refused}");
    for epoch in [jane.link.epoch - 1, jane.link.epoch + 1] {
        let other = Link { epoch, ..jane.link.clone() };
        let refused = ledger.open_link(opening(&other, "e1")).await.unwrap_err();
        assert!(matches!(refused, LinkError::Refused(LinkRefused::Replaced)), "{refused}");
    }
}

/// A lost inbox: what it may have held comes again, and says so.
pub async fn ce8_mail_from_before_a_lost_inbox_is_marked_redelivered(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    accepted(&*ledger, &jane, text("@carl", "a", "before the first link")).await;
    ledger.open_link(opening(&carl.link, "first")).await.unwrap();
    let marks =
        async || -> Vec<bool> { mail(&*ledger, &carl).await.iter().map(|row| row.redelivered).collect() };
    assert_eq!(marks().await, [false], "nothing can have been in an inbox that never was");
    accepted(&*ledger, &jane, text("@carl", "b", "while it lives")).await;
    ledger.open_link(opening(&carl.link, "first")).await.unwrap();
    assert_eq!(marks().await, [false, false]);
    ledger.open_link(opening(&carl.link, "second")).await.unwrap();
    accepted(&*ledger, &jane, text("@carl", "c", "after")).await;
    assert_eq!(marks().await, [true, true, false]);
    ledger.open_link(opening(&carl.link, "second")).await.unwrap();
    assert_eq!(marks().await, [true, true, false], "the same inbox again marks nothing more");
}

/// Rows a node knows to be accepted are missing: the ledger was restored.
pub async fn ce6_a_ledger_that_lost_rows_is_noticed(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    let receipt = accepted(&*ledger, &jane, text("#t", "kept", "hi")).await;
    let witness = |id: &str, message: MessageId| Witness {
        sender: jane.id(),
        client_message_id: id.parse::<ClientMessageId>().unwrap(),
        broker_message_id: message,
    };
    let restored = async |done: Vec<Witness>| {
        let opening = LinkOpening { done, ..opening(&jane.link, "e") };
        ledger.open_link(opening).await.unwrap().restored
    };
    let id = receipt.broker_message_id;
    assert!(!restored(vec![]).await);
    assert!(!restored(vec![witness("kept", id)]).await);
    assert!(restored(vec![witness("kept", id), witness("lost", id)]).await);
    assert!(
        restored(vec![witness("kept", MessageId::from_bytes([9; 16]))]).await,
        "another message took the id"
    );
    let stranger = Witness { sender: MemberId::from_bytes([9; 16]), ..witness("kept", id) };
    assert!(restored(vec![stranger]).await);
}

pub async fn a_restored_ledger_gets_its_members_back(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let listed = |byte: u8, name: &str, kind| LinkMember {
        id: MemberId::from_bytes([byte; 16]),
        name: member_name(name),
        kind,
    };
    let members = vec![
        // The person came back by a new invite, under a new id; its home says which one it has.
        listed(1, "jane", MemberKind::Person),
        listed(2, "bot", MemberKind::Agent),
        // A name that lives elsewhere by now stays there.
        listed(3, "carl", MemberKind::Agent),
    ];
    let again = LinkOpening { members, ..opening(&jane.link, "e") };
    for _ in 0..2 {
        let opened = ledger.open_link(again.clone()).await.unwrap();
        let found: Vec<_> = opened.members.iter().map(|member| (member.id, member.name.as_str())).collect();
        let id = |byte: u8| MemberId::from_bytes([byte; 16]);
        assert_eq!(found, [(id(1), "jane"), (id(2), "bot")]);
    }
    assert_eq!(ledger.member(jane.id()).await.unwrap(), None);
    assert_eq!(ledger.member_named(&member_name("carl")).await.unwrap().unwrap().id, carl.id());
    let jane = Home { person: ledger.member_named(&member_name("jane")).await.unwrap().unwrap(), ..jane };
    assert_eq!(jane.person.role, Role::Owner);
    accepted(&*ledger, &jane, text("@carl", "a", "hi")).await;
}
