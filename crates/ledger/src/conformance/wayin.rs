//! The way in: the order of its checks, each code, and what one ticket makes.

use std::time::Duration;

use model::{ErrorCode, MemberKind, limits};

use super::Bench;
use super::town::*;
use crate::*;

const AUD: &str = "postrider-link";

async fn exchange_code(ledger: &dyn Ledger, exchange: Exchange) -> ErrorCode {
    ledger.exchange(exchange).await.unwrap_err().code()
}

pub async fn setup_makes_one_mesh_and_one_key_for_good(mut bench: impl Bench) {
    let ledger = bench.ledger();
    assert!(matches!(ledger.mesh().await, Err(StorageError::NoMesh)));
    assert!(matches!(ledger.issuer().await, Err(StorageError::NoMesh)));
    let setup = |slug: &str| MeshSetup { slug: slug.into(), policies: POLICIES };
    let mesh = ledger.setup(setup("home")).await.unwrap();
    assert_eq!((mesh.slug.as_str(), mesh.policies), ("home", POLICIES));
    assert_eq!(ledger.setup(setup("other")).await.unwrap(), mesh);
    let seed = ledger.issuer().await.unwrap();
    assert_ne!(*seed.0, [0; 32]);
    assert!(!ledger.has_owner().await.unwrap());
    drop(ledger);
    bench.reopen().await;
    let ledger = bench.ledger();
    assert_eq!(ledger.mesh().await.unwrap(), mesh);
    assert_eq!(*ledger.issuer().await.unwrap().0, *seed.0);
}

pub async fn a_join_registers_node_key_and_person_at_once(bench: impl Bench) {
    let ledger = mesh(&bench).await;
    invite(&*ledger, "i", Role::Owner).await;
    ledger.check_invite(secret("i"), &node("jane")).await.unwrap();
    let asked = by_invite("jane", "i", "n");
    let exchanged = ledger.exchange(asked.clone()).await.unwrap();
    assert_eq!(exchanged.expires_at, exchanged.now + limits::TICKET_TTL);
    assert_eq!(exchanged.person, None);
    assert_eq!(bench.count("node").await, 0, "a ticket alone registers nothing");
    let joined = ledger.redeem(asked.ticket, AUD).await.unwrap();
    assert_eq!((joined.link.node.clone(), joined.link.epoch, joined.first_join), (node("jane"), 1, true));
    assert_eq!((joined.person.name.as_str(), joined.person.role), ("jane", Role::Owner));
    assert_eq!((joined.person.kind, &joined.person.home), (MemberKind::Person, &Some(node("jane"))));
    assert!(ledger.has_owner().await.unwrap());
    assert_eq!(ledger.invites().await.unwrap()[0].used_at, Some(joined.now));
    let back = come_back(&*ledger, "jane", "1").await;
    assert_eq!((back.link.epoch, back.first_join, back.person), (2, false, joined.person));
}

pub async fn each_state_of_an_invite_has_its_code(bench: impl Bench) {
    let ledger = mesh(&bench).await;
    let check = async |token: &str, name: &str| {
        let early = ledger.check_invite(secret(token), &node(name)).await.map_err(|error| error.code());
        let late = ledger.exchange(by_invite(name, token, "unused")).await.map_err(|error| error.code());
        assert_eq!(early.as_ref().err(), late.as_ref().err(), "the exchange repeats the check");
        early.unwrap_err()
    };
    assert_eq!(check("unknown", "jane").await, ErrorCode::InvalidToken);
    invite(&*ledger, "revoked", Role::Member).await;
    assert!(ledger.revoke_invite(secret("revoked")).await.unwrap());
    assert!(!ledger.revoke_invite(secret("revoked")).await.unwrap());
    assert_eq!(check("revoked", "jane").await, ErrorCode::InvalidToken);
    invite(&*ledger, "invite-carl", Role::Member).await;
    bench.advance(limits::INVITE_TTL);
    assert_eq!(check("invite-carl", "jane").await, ErrorCode::ExpiredToken);
    let carl = join(&*ledger, "dora", Role::Member).await;
    assert_eq!(check("invite-dora", "jane").await, ErrorCode::TokenAlreadyUsed);
    assert!(
        !ledger.revoke_invite(secret("invite-dora")).await.unwrap(),
        "a used invite cannot be taken back"
    );
    let expires_at = ledger.now().await.unwrap() + limits::INVITE_TTL;
    let expected_node = Some(carl.link.node);
    let bound = NewInvite { hash: secret("bound"), expected_node, role: Role::Member, expires_at };
    ledger.create_invite(bound).await.unwrap();
    assert_eq!(check("bound", "jane").await, ErrorCode::NodeMismatch);
}

pub async fn a_nonce_is_claimed_with_its_ticket_and_only_then(bench: impl Bench) {
    let ledger = mesh(&bench).await;
    invite(&*ledger, "i", Role::Member).await;
    assert_eq!(exchange_code(&*ledger, by_invite("jane", "unknown", "n")).await, ErrorCode::InvalidToken);
    assert_eq!(bench.count("nonce").await, 0, "a refused exchange claims nothing");
    ledger.exchange(by_invite("jane", "i", "n")).await.unwrap();
    let mut again = by_invite("jane", "i", "n");
    again.ticket = secret("another ticket");
    assert_eq!(exchange_code(&*ledger, again.clone()).await, ErrorCode::ReplayDetected);
    assert_eq!((bench.count("nonce").await, bench.count("ticket").await), (1, 1));
}

pub async fn an_invite_has_few_live_tickets(bench: impl Bench) {
    let ledger = mesh(&bench).await;
    invite(&*ledger, "i", Role::Member).await;
    for n in 0..limits::TICKETS_PER_INVITE_MAX {
        ledger.exchange(by_invite("jane", "i", &format!("n{n}"))).await.unwrap();
    }
    assert_eq!(exchange_code(&*ledger, by_invite("jane", "i", "more")).await, ErrorCode::RateLimited);
    bench.advance(limits::TICKET_TTL);
    ledger.exchange(by_invite("jane", "i", "more")).await.unwrap();
}

pub async fn each_state_of_a_ticket_has_its_code(bench: impl Bench) {
    let ledger = mesh(&bench).await;
    let code = async |ticket, aud| ledger.redeem(ticket, aud).await.unwrap_err().code();
    assert_eq!(code(secret("unknown"), AUD).await, ErrorCode::InvalidTicket);
    invite(&*ledger, "i", Role::Member).await;
    let asked = by_invite("jane", "i", "n");
    ledger.exchange(asked.clone()).await.unwrap();
    assert_eq!(code(asked.ticket, "postrider-pipe").await, ErrorCode::InvalidTicket);
    bench.advance(limits::TICKET_TTL);
    assert_eq!(code(asked.ticket, AUD).await, ErrorCode::ExpiredTicket);
    let fresh = by_invite("jane", "i", "n2");
    ledger.exchange(fresh.clone()).await.unwrap();
    ledger.redeem(fresh.ticket, AUD).await.unwrap();
    assert_eq!(code(fresh.ticket, AUD).await, ErrorCode::TicketAlreadyUsed);
    bench.advance(limits::TICKET_TTL);
    assert_eq!(code(fresh.ticket, AUD).await, ErrorCode::TicketAlreadyUsed, "used is told before expired");
}

pub async fn a_ticket_that_opens_no_link_lets_a_node_in_and_leaves_its_link(bench: impl Bench) {
    const READING: &str = "postrider-subscribe";
    let ledger = mesh(&bench).await;
    invite(&*ledger, "i", Role::Member).await;
    let asked = Exchange { aud: READING.into(), ..by_invite("jane", "i", "n") };
    ledger.exchange(asked.clone()).await.unwrap();
    assert_eq!(ledger.redeem(asked.ticket, AUD).await.unwrap_err().code(), ErrorCode::InvalidTicket);
    let first = ledger.enter(asked.ticket, READING).await.unwrap();
    assert_eq!((first.node, first.person.name.as_str(), first.first_join), (node("jane"), "jane", true));
    let again = ledger.enter(asked.ticket, READING).await.unwrap_err();
    assert_eq!(again.code(), ErrorCode::TicketAlreadyUsed);
    let link = come_back(&*ledger, "jane", "1").await.link;
    assert_eq!(link.epoch, 1, "no link was opened before");
    let hash = secret("challenge-2");
    ledger.issue_challenge(&node("jane"), hash).await.unwrap();
    let by = Secret::Challenge(hash);
    let asked = Exchange { by, aud: READING.into(), person: None, ..by_invite("jane", "unused", "n2") };
    ledger.exchange(asked.clone()).await.unwrap();
    assert!(!ledger.enter(asked.ticket, READING).await.unwrap().first_join);
    assert_eq!(come_back(&*ledger, "jane", "3").await.link.epoch, 2);
}

pub async fn the_second_ticket_of_an_invite_joins_nobody(bench: impl Bench) {
    let ledger = mesh(&bench).await;
    invite(&*ledger, "i", Role::Member).await;
    let (first, second) = (by_invite("jane", "i", "n1"), by_invite("carl", "i", "n2"));
    ledger.exchange(first.clone()).await.unwrap();
    ledger.exchange(second.clone()).await.unwrap();
    ledger.redeem(second.ticket, AUD).await.unwrap();
    let refusal = ledger.redeem(first.ticket, AUD).await.unwrap_err();
    assert_eq!(refusal.code(), ErrorCode::TokenAlreadyUsed);
    assert_eq!((bench.count("node").await, bench.count("member").await), (1, 1));
    let used = ledger.redeem(first.ticket, AUD).await.unwrap_err();
    assert_eq!(used.code(), ErrorCode::TokenAlreadyUsed, "a refused ticket was not used up");
}

/// A ticket exchanged before its invite was taken back.
pub async fn ce13_a_revoked_invite_joins_nobody(bench: impl Bench) {
    let ledger = mesh(&bench).await;
    invite(&*ledger, "i", Role::Member).await;
    let asked = by_invite("jane", "i", "n");
    ledger.exchange(asked.clone()).await.unwrap();
    assert!(ledger.revoke_invite(secret("i")).await.unwrap());
    assert_eq!(ledger.redeem(asked.ticket, AUD).await.unwrap_err().code(), ErrorCode::InvalidToken);
    assert_eq!((bench.count("node").await, bench.count("member").await), (0, 0));
}

pub async fn a_name_or_key_of_another_node_is_refused(bench: impl Bench) {
    let ledger = mesh(&bench).await;
    join(&*ledger, "jane", Role::Owner).await;
    invite(&*ledger, "i", Role::Member).await;
    let mut taken = by_invite("jane", "i", "n1");
    taken.public_key = key("somebody else");
    assert_eq!(exchange_code(&*ledger, taken).await, ErrorCode::NodeNameTaken);
    let mut renamed = by_invite("carl", "i", "n2");
    renamed.public_key = key("jane");
    assert_eq!(exchange_code(&*ledger, renamed).await, ErrorCode::NodeMismatch);
    let again = by_invite("jane", "i", "n3");
    ledger.exchange(again.clone()).await.unwrap();
    let joined = ledger.redeem(again.ticket, AUD).await.unwrap();
    assert_eq!((joined.first_join, joined.link.epoch), (false, 2), "the same node may join again");
    assert_eq!(joined.person.role, Role::Owner, "an invite for a member takes no role away");
    assert_eq!((bench.count("node").await, bench.count("member").await), (1, 1));
}

pub async fn a_taken_person_name_is_extended_by_the_node(bench: impl Bench) {
    let ledger = mesh(&bench).await;
    join(&*ledger, "jane", Role::Owner).await;
    invite(&*ledger, "i", Role::Member).await;
    let mut second = by_invite("laptop", "i", "n");
    second.person = Some(member_name("jane"));
    ledger.exchange(second.clone()).await.unwrap();
    assert_eq!(ledger.redeem(second.ticket, AUD).await.unwrap().person.name.as_str(), "jane-laptop-host");
    invite(&*ledger, "i2", Role::Member).await;
    let mut nameless = by_invite("server", "i2", "n2");
    nameless.person = None;
    ledger.exchange(nameless.clone()).await.unwrap();
    assert_eq!(ledger.redeem(nameless.ticket, AUD).await.unwrap().person.name.as_str(), "person");
}

pub async fn each_state_of_a_challenge_has_its_code(bench: impl Bench) {
    let ledger = mesh(&bench).await;
    let unknown = ledger.issue_challenge(&node("nobody"), secret("c0")).await.unwrap_err();
    assert_eq!(unknown.code(), ErrorCode::UnknownNode);
    let jane = join(&*ledger, "jane", Role::Owner).await;
    join(&*ledger, "carl", Role::Member).await;
    let by = |challenge: &str, name: &str, nonce: &str| Exchange {
        by: Secret::Challenge(secret(challenge)),
        ..by_invite(name, "none", nonce)
    };
    assert_eq!(exchange_code(&*ledger, by("never issued", "jane", "n1")).await, ErrorCode::InvalidToken);
    let now = ledger.issue_challenge(&node("jane"), secret("c1")).await.unwrap();
    assert!(now <= ledger.now().await.unwrap());
    let known = ledger.check_challenge(secret("c1"), &node("jane")).await.unwrap();
    assert_eq!(known.public_key, jane.key);
    assert_eq!(exchange_code(&*ledger, by("c1", "carl", "n2")).await, ErrorCode::NodeMismatch);
    let mut other_key = by("c1", "jane", "n3");
    other_key.public_key = key("somebody else");
    assert_eq!(exchange_code(&*ledger, other_key).await, ErrorCode::NodeMismatch);
    let exchanged = ledger.exchange(by("c1", "jane", "n4")).await.unwrap();
    assert_eq!(exchanged.person, Some(jane.person));
    assert_eq!(exchange_code(&*ledger, by("c1", "jane", "n5")).await, ErrorCode::ReplayDetected);
    ledger.issue_challenge(&node("jane"), secret("c2")).await.unwrap();
    bench.advance(limits::CHALLENGE_TTL);
    assert_eq!(exchange_code(&*ledger, by("c2", "jane", "n6")).await, ErrorCode::ExpiredToken);
}

pub async fn a_removed_node_finds_every_door_closed(bench: impl Bench) {
    let (ledger, _, carl) = two_homes(&bench).await;
    ledger.issue_challenge(&node("carl"), secret("c")).await.unwrap();
    let mut asked = by_invite("carl", "none", "n");
    asked.by = Secret::Challenge(secret("c"));
    ledger.exchange(asked.clone()).await.unwrap();
    ledger.remove_member(&member_name("carl")).await.unwrap();
    assert_eq!(ledger.redeem(asked.ticket, AUD).await.unwrap_err().code(), ErrorCode::Revoked);
    let challenge = ledger.issue_challenge(&node("carl"), secret("c2")).await.unwrap_err();
    assert_eq!(challenge.code(), ErrorCode::Revoked);
    let opened = ledger.open_link(opening(&carl.link, "e")).await.unwrap_err();
    assert!(matches!(opened, LinkError::Refused(LinkRefused::Revoked)), "{opened}");
    invite(&*ledger, "i", Role::Member).await;
    assert_eq!(exchange_code(&*ledger, by_invite("carl", "i", "n2")).await, ErrorCode::Revoked);
}

pub async fn what_is_over_is_forgotten_after_a_while(bench: impl Bench) {
    let ledger = mesh(&bench).await;
    join(&*ledger, "jane", Role::Owner).await;
    ledger.issue_challenge(&node("jane"), secret("c")).await.unwrap();
    bench.advance(limits::INVITE_TTL);
    ledger.sweep_way_in().await.unwrap();
    assert_eq!((bench.count("nonce").await, bench.count("challenge").await), (0, 0));
    assert_eq!(
        (bench.count("ticket").await, bench.count("invite").await),
        (1, 1),
        "used ones can still be told"
    );
    bench.advance(limits::TICKET_KEPT + Duration::from_secs(1));
    assert_eq!(ledger.sweep_way_in().await.unwrap(), 2);
    assert_eq!((bench.count("ticket").await, bench.count("invite").await), (0, 0));
}
