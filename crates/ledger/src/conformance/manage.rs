//! Members, topics, tokens, policies.

use std::time::Duration;

use model::{DeliveryRung, ErrorCode, MemberId, MemberKind};

use super::Bench;
use super::town::*;
use crate::*;

pub async fn a_name_belongs_to_one_home_for_ever(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let bot = member_name("bot");
    let first = ledger.register_member(&jane.link, &bot, MemberKind::Agent).await.unwrap();
    assert!(matches!(first, Registered::New(_)), "{first:?}");
    let again = ledger.register_member(&jane.link, &bot, MemberKind::Agent).await.unwrap();
    assert_eq!(again, Registered::Known(first.member().clone()));
    let codes = [
        ledger.register_member(&carl.link, &bot, MemberKind::Agent).await.unwrap_err().code(),
        ledger.register_member(&jane.link, &bot, MemberKind::Service).await.unwrap_err().code(),
        ledger.host_member(&bot, MemberKind::Agent).await.unwrap_err().code(),
    ];
    assert_eq!(codes, [ErrorCode::NameTaken; 3]);
    ledger.remove_member(&bot).await.unwrap();
    let reused = ledger.register_member(&jane.link, &bot, MemberKind::Agent).await.unwrap_err();
    assert_eq!(reused.code(), ErrorCode::NameTaken, "a removed member's name is not given again");
    let hosted = ledger.host_member(&member_name("ci"), MemberKind::Service).await.unwrap();
    assert_eq!((hosted.member().home.clone(), hosted.member().role), (None, Role::Member));
    let known = ledger.host_member(&member_name("ci"), MemberKind::Service).await.unwrap();
    assert_eq!(known, Registered::Known(hosted.member().clone()));
}

pub async fn members_are_listed_by_name_page_by_page(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    ledger.register_member(&jane.link, &member_name("bot"), MemberKind::Agent).await.unwrap();
    ledger.remove_member(&member_name("bot")).await.unwrap();
    let first = ledger.members(None, 2).await.unwrap();
    let names: Vec<_> = first.iter().map(|member| member.name.as_str()).collect();
    assert_eq!(names, ["bot", "carl"]);
    assert!(first[0].removed_at.is_some());
    let rest = ledger.members(Some(&first[1].name), 2).await.unwrap();
    assert_eq!(rest, std::slice::from_ref(&jane.person));
    assert_eq!(ledger.member(jane.id()).await.unwrap(), Some(jane.person));
    assert_eq!(ledger.member(MemberId::from_bytes([9; 16])).await.unwrap(), None);
}

pub async fn a_person_goes_with_its_node_and_everybody_at_home_there(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let bot = ledger.register_member(&carl.link, &member_name("bot"), MemberKind::Agent).await.unwrap();
    ledger.create_topic(bot.member().id, &topic("t")).await.unwrap();
    let new = NewToken { hash: secret("t"), member: bot.member().id, scopes: Scopes::default() };
    ledger.create_token(new).await.unwrap();
    assert!(ledger.resolve_token(secret("t")).await.unwrap().is_some());
    let waiting = accepted(&*ledger, &jane, text("@bot", "a", "hi")).await;
    ledger.remove_member(&member_name("carl")).await.unwrap();
    for name in ["carl", "bot"] {
        assert!(ledger.member_named(&member_name(name)).await.unwrap().unwrap().removed_at.is_some());
    }
    assert_eq!(ledger.topics(jane.id(), None, 10).await.unwrap()[0].subscribers, 0);
    assert_eq!(ledger.resolve_token(secret("t")).await.unwrap(), None);
    assert_eq!(ledger.expire_undelivered(100).await.unwrap(), 1);
    let ended = [("bot".to_owned(), DeliveryRung::DeadLetter)];
    assert_eq!(rungs(&*ledger, waiting.broker_message_id).await, ended);
    assert_eq!(receipts(&*ledger, &jane).await[0].ended_code.as_deref(), Some("revoked"));
    let again = ledger.remove_member(&member_name("carl")).await.unwrap_err();
    assert_eq!(again.code(), ErrorCode::MemberNotFound);
    let last = ledger.remove_member(&member_name("jane")).await.unwrap_err();
    assert_eq!(last.code(), ErrorCode::Forbidden, "somebody must own the mesh");
}

pub async fn subscribing_twice_is_subscribing_once(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let t = topic("t");
    assert_eq!(ledger.subscribe(carl.id(), &t).await.unwrap_err().code(), ErrorCode::TopicNotFound);
    assert_eq!(ledger.unsubscribe(carl.id(), &t).await.unwrap_err().code(), ErrorCode::TopicNotFound);
    let made = ledger.create_topic(jane.id(), &t).await.unwrap();
    assert_eq!((made.head, made.subscribers, made.subscribed), (0, 1, true));
    for _ in 0..2 {
        ledger.subscribe(carl.id(), &t).await.unwrap();
    }
    let again = ledger.create_topic(carl.id(), &t).await.unwrap();
    assert_eq!((again.conversation, again.subscribers), (made.conversation, 2));
    let receipt = accepted(&*ledger, &jane, text("#t", "a", "hi")).await;
    assert_eq!(rungs(&*ledger, receipt.broker_message_id).await.len(), 1);
    for _ in 0..2 {
        ledger.unsubscribe(carl.id(), &t).await.unwrap();
    }
    let receipt = accepted(&*ledger, &jane, text("#t", "b", "hi")).await;
    assert_eq!(rungs(&*ledger, receipt.broker_message_id).await, []);
    let stranger = MemberId::from_bytes([9; 16]);
    assert_eq!(ledger.subscribe(stranger, &t).await.unwrap_err().code(), ErrorCode::MemberNotFound);
    ledger.create_topic(carl.id(), &topic("a")).await.unwrap();
    let page = ledger.topics(carl.id(), None, 1).await.unwrap();
    assert_eq!(page[0].topic, topic("a"));
    assert_eq!(ledger.topics(carl.id(), Some(&page[0].topic), 5).await.unwrap()[0].topic, t);
}

pub async fn a_closed_conversation_takes_nothing_until_it_is_opened(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    let first = accepted(&*ledger, &jane, text("@carl", "a", "hi")).await;
    let log = first.conversation;
    ledger.set_conversation_state(log, ConversationState::Closed).await.unwrap();
    assert_eq!(refused(&*ledger, &jane, text("@carl", "b", "hi")).await.code, ErrorCode::ConversationClosed);
    // What was accepted before stays so, whoever asks again and whatever comes with it.
    let copy = ["a", "b"].map(|id| text("@carl", id, "hi")).to_vec();
    let outcomes = send(&*ledger, &jane, copy).await;
    let duplicate = Admission::Duplicate { history_available: true };
    assert_eq!(outcomes[0], Outcome::Admitted { receipt: first, admission: duplicate });
    assert!(
        matches!(&outcomes[1], Outcome::Refused(refusal) if refusal.code == ErrorCode::ConversationClosed)
    );
    ledger.set_conversation_state(log, ConversationState::Active).await.unwrap();
    accepted(&*ledger, &jane, text("@carl", "b", "hi")).await;
    let nowhere = model::ConversationId::from_bytes([9; 16]);
    let refused = ledger.set_conversation_state(nowhere, ConversationState::Active).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::ConversationNotFound);
}

pub async fn a_token_acts_as_its_member_until_it_is_revoked(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    let scopes = Scopes { send: true, read: false, hub: true };
    let new = NewToken { hash: secret("one"), member: jane.id(), scopes };
    let token = ledger.create_token(new.clone()).await.unwrap();
    assert_eq!((&token.member, token.scopes, token.revoked_at), (&jane.person, scopes, None));
    assert_eq!(ledger.resolve_token(secret("one")).await.unwrap(), Some(token.clone()));
    assert_eq!(ledger.resolve_token(secret("other")).await.unwrap(), None);
    let other = NewToken { hash: secret("two"), ..new.clone() };
    let kept = ledger.create_token(other).await.unwrap();
    assert!(ledger.revoke_token(token.id).await.unwrap());
    assert!(!ledger.revoke_token(token.id).await.unwrap());
    assert_eq!(ledger.resolve_token(secret("one")).await.unwrap(), None);
    let listed = ledger.tokens().await.unwrap();
    assert_eq!((listed.len(), listed[0].id, listed[0].revoked_at.is_some()), (2, token.id, true));
    assert_eq!(listed[1], kept);
    let stranger = NewToken { hash: secret("three"), member: MemberId::from_bytes([9; 16]), ..new };
    assert_eq!(ledger.create_token(stranger).await.unwrap_err().code(), ErrorCode::MemberNotFound);
}

pub async fn a_lower_window_does_not_shorten_rows_that_exist(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    let longer = Policies { dedupe: model::outbox::DedupeWindow::Days(30), ..POLICIES };
    assert_eq!(ledger.set_policies(longer).await.unwrap().policies, longer);
    accepted(&*ledger, &jane, text("#t", "a", "hi")).await;
    ledger.set_policies(POLICIES).await.unwrap();
    accepted(&*ledger, &jane, text("#t", "b", "hi")).await;
    bench.advance(PAST_WINDOW);
    assert_eq!(forgotten(&*ledger).await, 1, "only the row written under the lower window");
    assert!(ledger.known(jane.id(), &"a".parse().unwrap()).await.unwrap().is_some());
    bench.advance(Duration::from_secs(30 * 24 * 3600));
    assert_eq!(forgotten(&*ledger).await, 1);
}
