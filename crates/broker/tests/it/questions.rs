//! Questions over the link.

use model::{Fingerprint, MemberKind, Timestamp};
use wire::ask::{
    ConversationRow, Done, Invite, InviteRow, MemberRow, Policies, PolicyChange, Question, RecipientRung,
    Scope, StatusAnswer, Token, TokenRow, TopicRow,
};
use wire::log::{Page, PageRequest};

use crate::node::{accepted, client_id, item};
use crate::scene::Scene;

fn topic(name: &str) -> model::TopicName {
    name.parse().unwrap()
}

#[tokio::test]
async fn a_topics_history_is_paged_back_from_its_head() {
    let scene = Scene::open().await;
    let mut jane = scene.joined("jane").await.link().await;
    for n in 1..=5 {
        accepted(jane.send_one("#alerts", &format!("m{n}"), &format!("body {n}")).await);
    }
    let mut tom = scene.joined("tom").await.link().await;
    let mut before = None;
    let mut bodies = Vec::new();
    loop {
        let page = PageRequest { before: before.clone(), limit: Some(2) };
        let page: Page = tom.ask(Question::TopicHistory { topic: topic("alerts"), page }).await.unwrap();
        bodies.extend(page.messages.iter().rev().map(|message| message.fields.body.clone()));
        if !page.has_more {
            break;
        }
        before = Some(page.before);
    }
    assert_eq!(bodies, ["body 5", "body 4", "body 3", "body 2", "body 1"]);
    let absent = Question::TopicHistory { topic: topic("nowhere"), page: PageRequest::default() };
    assert_eq!(tom.ask::<Page>(absent).await.unwrap_err(), "topic_not_found");
    let forged = PageRequest { before: Some("1.000000000:x:0".into()), limit: None };
    let forged = Question::TopicHistory { topic: topic("alerts"), page: forged };
    assert_eq!(tom.ask::<Page>(forged).await.unwrap_err(), "invalid_cursor");
}

#[tokio::test]
async fn a_direct_conversation_is_read_by_its_two_and_by_nobody_else() {
    let scene = Scene::open().await;
    let mut jane = scene.joined("jane").await.link().await;
    let mut tom = scene.joined("tom").await.link().await;
    let mut eve = scene.joined("eve").await.link().await;
    let conversation = accepted(jane.send_one("@tom", "m1", "hi").await).conversation;
    for (link, name) in [(&mut jane, "@tom"), (&mut tom, "@jane")] {
        let page = Question::Conversation { conversation, page: PageRequest::default() };
        let page: Page = link.ask(page).await.unwrap();
        assert_eq!(page.messages[0].conversation_name.as_deref(), Some(name));
        let rows: Vec<ConversationRow> = link.ask(Question::Conversations).await.unwrap();
        assert_eq!((rows.len(), rows[0].conversation_name.as_str(), rows[0].head), (1, name, 1));
    }
    let page = Question::Conversation { conversation, page: PageRequest::default() };
    assert_eq!(eve.ask::<Page>(page).await.unwrap_err(), "conversation_not_found");
    assert!(eve.ask::<Vec<ConversationRow>>(Question::Conversations).await.unwrap().is_empty());
}

#[tokio::test]
async fn members_and_topics_are_listed_as_the_asker_sees_them() {
    let scene = Scene::open().await;
    let mut jane = scene.owner("jane").await.link().await;
    let mut tom = scene.joined("tom").await.link().await;
    accepted(jane.send_one("#alerts", "m1", "hi").await);
    let members: Vec<MemberRow> = tom.ask(Question::Members).await.unwrap();
    let rows: Vec<_> = members
        .iter()
        .map(|row| (row.member.name.as_str(), row.home.as_deref(), row.role.as_str()))
        .collect();
    assert_eq!(rows, [("jane", Some("jane"), "owner"), ("tom", Some("tom"), "member")]);
    for (link, subscribed) in [(&mut jane, true), (&mut tom, false)] {
        let topics: Vec<TopicRow> = link.ask(Question::Topics).await.unwrap();
        assert_eq!(
            (topics[0].topic.as_str(), topics[0].head, topics[0].subscribed),
            ("alerts", 1, subscribed)
        );
    }
}

#[tokio::test]
async fn only_a_member_at_home_may_ask() {
    let scene = Scene::open().await;
    let jane = scene.joined("jane").await.link().await;
    let mut eve = scene.joined("eve").await.link().await;
    assert_eq!(
        eve.ask_as::<Vec<MemberRow>>(jane.person, Question::Members).await.unwrap_err(),
        "not_at_home"
    );
    eve.say_text(&format!(r#"{{"type":"ask","n":900,"as":"{}","what":"everything"}}"#, eve.person)).await;
    let refused = eve
        .await_frame(|frame| match frame {
            wire::link::ToNode::Answer(answer) if answer.n == 900 => Ok(answer.result),
            other => Err(other.into()),
        })
        .await;
    assert!(matches!(refused, wire::ask::AnswerResult::Refused { status: 400, .. }));
}

#[tokio::test]
async fn a_fenced_id_is_absent_once_and_then_retired_for_ever() {
    let scene = Scene::open().await;
    let mut jane = scene.joined("jane").await.link().await;
    let (sender, now) = (jane.person, jane.hello.now);
    let (_, raw) = item("#a", "m1", "hi");
    let row: wire::link::SendItem = serde_json::from_str(raw.get()).unwrap();
    let asked = |id: &str, fingerprint: Fingerprint, fence: bool| Question::MessageStatus {
        sender,
        client_message_id: client_id(id),
        request_fingerprint: fingerprint,
        first_attempt_at: now,
        fence,
    };
    let absent: StatusAnswer = jane.ask(asked("m1", row.request_fingerprint, false)).await.unwrap();
    assert!(matches!(absent, StatusAnswer::Absent));
    let accepted_row = accepted(jane.send(vec![raw]).await.remove(0));
    let found: StatusAnswer = jane.ask(asked("m1", row.request_fingerprint, true)).await.unwrap();
    let StatusAnswer::Accepted(found) = found else { panic!("accepted, not {found:?}") };
    assert_eq!(found.broker_message_id, accepted_row.broker_message_id);
    let other: StatusAnswer = jane.ask(asked("m1", Fingerprint::from_bytes([1; 32]), true)).await.unwrap();
    assert!(matches!(other, StatusAnswer::AcceptedOtherFingerprint));
    let (_, late) = item("#a", "m2", "hi");
    let late_row: wire::link::SendItem = serde_json::from_str(late.get()).unwrap();
    let fenced: StatusAnswer = jane.ask(asked("m2", late_row.request_fingerprint, true)).await.unwrap();
    assert!(matches!(fenced, StatusAnswer::Absent | StatusAnswer::Retired));
    let outcome = jane.send(vec![late]).await.remove(0);
    assert_eq!(crate::node::refused(&outcome).1, "id_retired", "a late copy of a fenced id");
    let eve_asks = Question::MessageStatus {
        sender,
        client_message_id: client_id("m1"),
        request_fingerprint: row.request_fingerprint,
        first_attempt_at: Timestamp::from_micros(0),
        fence: false,
    };
    let mut eve = scene.joined("eve").await.link().await;
    let unknown: StatusAnswer = eve.ask(eve_asks).await.unwrap();
    assert!(matches!(unknown, StatusAnswer::Unknown), "another node's ids are not told");
}

#[tokio::test]
async fn topics_are_created_joined_and_left() {
    let scene = Scene::open().await;
    let mut owner = scene.owner("jane").await.link().await;
    let mut tom = scene.joined("tom").await.link().await;
    let made: TopicRow = tom.ask(Question::TopicCreate { topic: topic("builds") }).await.unwrap();
    assert!(made.subscribed);
    tom.ask::<Done>(Question::TopicUnsubscribe { topic: topic("builds") }).await.unwrap();
    tom.ask::<Done>(Question::TopicUnsubscribe { topic: topic("builds") }).await.unwrap();
    let missing = tom.ask::<Done>(Question::TopicSubscribe { topic: topic("nowhere") }).await;
    assert_eq!(missing.unwrap_err(), "topic_not_found");
    let declared = PolicyChange { topics: Some("declared".into()), ..PolicyChange::default() };
    assert_eq!(tom.ask::<Policies>(Question::PoliciesSet(declared.clone())).await.unwrap_err(), "forbidden");
    let set: Policies = owner.ask(Question::PoliciesSet(declared)).await.unwrap();
    assert_eq!((set.topics.as_str(), set.dedupe_days), ("declared", Some(365)));
    assert_eq!(tom.ask::<Policies>(Question::Policies).await.unwrap(), set);
    let refused = tom.ask::<TopicRow>(Question::TopicCreate { topic: topic("more") }).await;
    assert_eq!(refused.unwrap_err(), "forbidden");
    let outcome = tom.send_one("#more", "m1", "hi").await;
    assert_eq!(
        (crate::node::refused(&outcome).0, crate::node::refused(&outcome).1),
        (404, "topic_not_found")
    );
    owner.ask::<TopicRow>(Question::TopicCreate { topic: topic("more") }).await.unwrap();
    accepted(tom.send_one("#more", "m1", "hi").await);
}

#[tokio::test]
async fn an_agent_is_registered_once_and_a_name_at_another_home_is_taken() {
    let scene = Scene::open().await;
    let mut jane = scene.joined("jane").await.link().await;
    let mut tom = scene.joined("tom").await.link().await;
    let register = |kind| Question::MemberRegister { name: "ci".parse().unwrap(), kind };
    let made: MemberRow = jane.ask(register(MemberKind::Agent)).await.unwrap();
    let again: MemberRow = jane.ask(register(MemberKind::Agent)).await.unwrap();
    assert_eq!(made.member, again.member);
    assert_eq!(tom.ask::<MemberRow>(register(MemberKind::Agent)).await.unwrap_err(), "name_taken");
    assert_eq!(jane.ask::<MemberRow>(register(MemberKind::Person)).await.unwrap_err(), "forbidden");
    let n = jane.start_send(made.member.id, vec![item("@tom", "m1", "hi").1]).await;
    accepted(jane.sent(n).await.remove(0).outcome);
    assert_eq!(tom.mail().await[0].message.sender.as_str(), "ci");
}

#[tokio::test]
async fn invites_and_tokens_are_the_owners() {
    let scene = Scene::open().await;
    let mut owner = scene.owner("jane").await.link().await;
    let mut tom = scene.joined("tom").await.link().await;
    for question in [
        Question::InviteCreate { node: None },
        Question::Invites,
        Question::Tokens,
        Question::TokenCreate { member: "tom".parse().unwrap(), scopes: vec![Scope::Send] },
        Question::MemberRemove { name: "jane".parse().unwrap() },
    ] {
        assert_eq!(tom.ask::<serde_json::Value>(question).await.unwrap_err(), "forbidden");
    }
    let invite: Invite =
        owner.ask(Question::InviteCreate { node: Some("lab".parse().unwrap()) }).await.unwrap();
    let rows: Vec<InviteRow> = owner.ask(Question::Invites).await.unwrap();
    let row = rows.iter().find(|row| row.node.as_ref().is_some_and(|node| node.as_str() == "lab")).unwrap();
    owner.ask::<Done>(Question::InviteRevoke { id: row.id.clone() }).await.unwrap();
    assert!(scene.stranger("lab").join(&invite.token).await.is_err(), "taken back");
    let asked =
        Question::TokenCreate { member: "cron".parse().unwrap(), scopes: vec![Scope::Send, Scope::Read] };
    let token: Token = owner.ask(asked).await.unwrap();
    assert_eq!(
        (token.row.member.as_str(), token.row.scopes.as_slice()),
        ("cron", &[Scope::Send, Scope::Read][..])
    );
    let members: Vec<MemberRow> = owner.ask(Question::Members).await.unwrap();
    let cron = members.iter().find(|row| row.member.name.as_str() == "cron").unwrap();
    assert_eq!((cron.member.kind.as_str(), cron.home.as_deref()), ("service", None));
    owner.ask::<Done>(Question::TokenRevoke { id: token.row.id }).await.unwrap();
    let tokens: Vec<TokenRow> = owner.ask(Question::Tokens).await.unwrap();
    assert!(tokens[0].revoked_at.is_some());
}

#[tokio::test]
async fn how_far_each_copy_came_is_told_to_its_sender_alone() {
    let scene = Scene::open().await;
    let mut jane = scene.joined("jane").await.link().await;
    let mut tom = scene.joined("tom").await.link().await;
    let id = accepted(jane.send_one("@tom", "m1", "hi").await).broker_message_id;
    let mail = tom.mail().await;
    tom.ack(&mail, model::DeliveryRung::Notified).await;
    let rungs: Vec<RecipientRung> = jane.ask(Question::Rungs { id }).await.unwrap();
    assert_eq!((rungs[0].recipient, rungs[0].rung), (tom.person, model::DeliveryRung::Notified));
    let mut eve = scene.joined("eve").await.link().await;
    assert_eq!(eve.ask::<Vec<RecipientRung>>(Question::Rungs { id }).await.unwrap_err(), "not_found");
}
