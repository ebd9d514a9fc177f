//! Opening a link: a lost inbox, a restored ledger.

use model::{ClientMessageId, DeliveryRung, MemberId, MemberKind, MessageId, Timestamp};

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
        accepted_at: None,
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

/// What a home has in its inbox, in the order it came, and what it says of it.
struct Inbox {
    home: Home,
    rows: Vec<(MessageId, DeliveryRung)>,
}

impl Inbox {
    /// Takes all mail that waits and tells each row's place with its rung; the rows that came.
    async fn take(&mut self, ledger: &dyn Ledger) -> Vec<MailRow> {
        let taken = mail(ledger, &self.home).await;
        let mut acks = Vec::new();
        for row in &taken {
            let known = self.rows.iter().position(|(id, _)| *id == row.id);
            let place = known.unwrap_or_else(|| {
                self.rows.push((row.id, DeliveryRung::Delivered));
                self.rows.len() - 1
            });
            let held = &mut self.rows[place].1;
            *held = (*held).max(row.again.unwrap_or(DeliveryRung::Delivered));
            acks.push(Ack { place: Some(place as u64 + 1), ..ack(row, *held) });
        }
        ledger.ack(&self.home.via(), acks).await.unwrap();
        taken
    }

    /// Tells a rung that the row at `place`, from 0, reached.
    async fn tell(&mut self, ledger: &dyn Ledger, place: usize, rung: DeliveryRung) {
        self.rows[place].1 = rung;
        let at = ledger.now().await.unwrap();
        let told = Ack {
            id: self.rows[place].0,
            recipient: self.home.id(),
            rung,
            at,
            read_at: None,
            place: Some(place as u64 + 1),
        };
        ledger.ack(&self.home.via(), vec![told]).await.unwrap();
    }

    /// Opens the link again with what it holds.
    async fn open(&self, ledger: &dyn Ledger) -> LinkOpened {
        let received = Some(self.rows.len() as u64);
        let opening = LinkOpening { received, ..opening(&self.home.link, "e") };
        ledger.open_link(opening).await.unwrap()
    }
}

fn ids(rows: &[MailRow]) -> Vec<String> {
    rows.iter().map(|row| row.client_message_id.to_string()).collect()
}

/// Jane's ledger, and carl's inbox that holds `kept` messages of `all`.
async fn older_inbox(
    bench: &impl Bench,
    kept: usize,
    all: usize,
) -> (std::sync::Arc<dyn Ledger>, Home, Inbox) {
    let (ledger, jane, carl) = two_homes(bench).await;
    let mut inbox = Inbox { home: carl, rows: Vec::new() };
    inbox.open(&*ledger).await;
    for n in 0..all {
        accepted(&*ledger, &jane, text("@carl", &format!("m{n}"), "hi")).await;
        inbox.take(&*ledger).await;
    }
    inbox.rows.truncate(kept);
    (ledger, jane, inbox)
}

/// What came after the copy comes again, marked, before anything new, until the inbox has it.
pub async fn t10_an_inbox_that_went_back_is_sent_what_it_lacks_again(bench: impl Bench) {
    let (ledger, jane, mut inbox) = older_inbox(&bench, 2, 5).await;
    accepted(&*ledger, &jane, text("@carl", "new", "hi")).await;
    let opened = inbox.open(&*ledger).await;
    let went_back = opened.inbox_went_back.expect("an inbox that holds less than it told went back");
    assert_eq!((went_back.from, went_back.to, went_back.left), (5, 2, 3));
    let again = inbox.open(&*ledger).await.inbox_went_back.unwrap();
    assert_eq!(again, went_back, "a link that opens again says the same");
    let rows = inbox.take(&*ledger).await;
    assert_eq!(ids(&rows), ["m2", "m3", "m4", "new"]);
    assert!(rows.iter().all(|row| row.redelivered), "{rows:?}");
    let known: Vec<_> = rows.iter().map(|row| row.again).collect();
    assert_eq!(
        known,
        [Some(DeliveryRung::Delivered), Some(DeliveryRung::Delivered), Some(DeliveryRung::Delivered), None]
    );
    assert_eq!(ids(&inbox.take(&*ledger).await), Vec::<String>::new());
    let whole = inbox.open(&*ledger).await.inbox_went_back.unwrap();
    assert_eq!(whole.left, 0, "{whole:?}");
    let told = receipts(&*ledger, &jane).await;
    assert!(told.iter().all(|row| row.rung == DeliveryRung::Delivered), "no receipt is taken back: {told:?}");
}

/// Acks of a node that did not tell places may be of anything the copy lacks; other homes' mail is left alone.
pub async fn t10_what_was_never_told_is_sent_again_too_and_what_is_kept_is_not(bench: impl Bench) {
    let (ledger, jane, mut inbox) = older_inbox(&bench, 1, 3).await;
    accepted(&*ledger, &jane, text("@carl", "untold", "hi")).await;
    let row = mail(&*ledger, &inbox.home).await.remove(0);
    ledger.ack(&inbox.home.via(), vec![ack(&row, DeliveryRung::Delivered)]).await.unwrap();
    accepted(&*ledger, &inbox.home, text("@jane", "hers", "hi")).await;
    let hers = mail(&*ledger, &jane).await.remove(0);
    ledger.ack(&jane.via(), vec![ack(&hers, DeliveryRung::Delivered)]).await.unwrap();
    inbox.open(&*ledger).await;
    assert_eq!(mail(&*ledger, &jane).await, []);
    assert_eq!(ids(&inbox.take(&*ledger).await), ["m1", "m2", "untold"]);
}

/// A turn that began or ended since the copy is not begun again unmarked, because its rung comes back too.
pub async fn t10_work_that_was_begun_since_the_copy_is_told_again(bench: impl Bench) {
    let (ledger, _, mut inbox) = older_inbox(&bench, 3, 3).await;
    inbox.tell(&*ledger, 0, DeliveryRung::Processed).await;
    inbox.tell(&*ledger, 1, DeliveryRung::Engaged).await;
    inbox.tell(&*ledger, 2, DeliveryRung::Notified).await;
    inbox.rows.truncate(2);
    inbox.rows.iter_mut().for_each(|(_, rung)| *rung = DeliveryRung::Delivered);
    inbox.open(&*ledger).await;
    // What the older inbox repeats of itself before it has heard more does not count as having heard.
    inbox.tell(&*ledger, 0, DeliveryRung::Delivered).await;
    let rows = inbox.take(&*ledger).await;
    let known: Vec<_> = rows.iter().map(|row| row.again.unwrap()).collect();
    assert_eq!(known, [DeliveryRung::Processed, DeliveryRung::Engaged, DeliveryRung::Notified]);
    assert_eq!(mail(&*ledger, &inbox.home).await, []);
}

/// A mailbox restored from a backup tells another epoch and the one it had: it is told what was begun since although it
/// lacks nothing, and what is on its way to it may have come before.
pub async fn t10_a_restored_inbox_is_told_what_was_begun_since_although_it_lacks_nothing(bench: impl Bench) {
    let (ledger, jane, mut inbox) = older_inbox(&bench, 2, 2).await;
    inbox.tell(&*ledger, 0, DeliveryRung::Processed).await;
    accepted(&*ledger, &jane, text("@carl", "ontheway", "hi")).await;
    let restored = LinkOpening {
        inbox_epoch_before: Some("e".into()),
        received: Some(2),
        ..opening(&inbox.home.link, "restored")
    };
    let went_back = ledger.open_link(restored.clone()).await.unwrap().inbox_went_back.unwrap();
    assert_eq!((went_back.from, went_back.to, went_back.left), (2, 2, 1));
    assert_eq!(ledger.open_link(restored).await.unwrap().inbox_went_back, Some(went_back), "told once");
    inbox.rows[0].1 = DeliveryRung::Delivered;
    let rows = inbox.take(&*ledger).await;
    let came: Vec<_> = rows.iter().map(|row| (row.client_message_id.as_str(), row.again)).collect();
    assert_eq!(came, [("m0", Some(DeliveryRung::Processed)), ("ontheway", None)]);
    assert!(rows.iter().all(|row| row.redelivered), "{rows:?}");
    assert_eq!(mail(&*ledger, &inbox.home).await, []);
}

pub async fn t10_a_restored_inbox_that_had_told_no_place_is_remembered(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    ledger.open_link(opening(&carl.link, "e")).await.unwrap();
    accepted(&*ledger, &jane, text("@carl", "a", "hi")).await;
    let row = mail(&*ledger, &carl).await.remove(0);
    ledger.ack(&carl.via(), vec![ack(&row, DeliveryRung::Engaged)]).await.unwrap();
    let restored = LinkOpening {
        inbox_epoch_before: Some("e".into()),
        received: Some(1),
        ..opening(&carl.link, "restored")
    };
    ledger.open_link(restored).await.unwrap();
    assert_eq!(mail(&*ledger, &carl).await[0].again, Some(DeliveryRung::Engaged));
}

pub async fn t10_an_inbox_that_is_whole_or_says_nothing_is_sent_nothing_again(bench: impl Bench) {
    let (ledger, jane, mut inbox) = older_inbox(&bench, 3, 3).await;
    assert_eq!(inbox.open(&*ledger).await.inbox_went_back, None);
    let silent = ledger.open_link(opening(&inbox.home.link, "e")).await.unwrap();
    assert_eq!(silent.inbox_went_back, None, "a node of before does not tell places");
    accepted(&*ledger, &jane, text("@carl", "new", "hi")).await;
    assert_eq!(ids(&inbox.take(&*ledger).await), ["new"]);
    // A node of before that took over an inbox that went back acks without places, and is sent nothing for ever.
    inbox.rows.truncate(1);
    inbox.open(&*ledger).await;
    let rows = mail(&*ledger, &inbox.home).await;
    assert_eq!(rows.len(), 3);
    let acks = rows.iter().map(|row| ack(row, DeliveryRung::Delivered)).collect();
    ledger.ack(&inbox.home.via(), acks).await.unwrap();
    assert_eq!(mail(&*ledger, &inbox.home).await, []);
    // What cannot be stored is not sent for ever either.
    inbox.rows.truncate(0);
    inbox.open(&*ledger).await;
    let rows = mail(&*ledger, &inbox.home).await;
    let nack = |row: &MailRow| Nack { id: row.id, recipient: row.recipient, code: "x".into() };
    ledger.nack(&inbox.home.link, rows.iter().map(nack).collect()).await.unwrap();
    assert_eq!(mail(&*ledger, &inbox.home).await, []);
}

/// One loss is noted once, however many nodes tell of it.
pub async fn a_ledger_that_went_back_names_the_time_it_lost(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let receipt = accepted(&*ledger, &jane, text("#t", "kept", "hi")).await;
    let witness = |home: &Home, id: &str, message: MessageId, accepted_at: Timestamp| Witness {
        sender: home.id(),
        client_message_id: id.parse::<ClientMessageId>().unwrap(),
        broker_message_id: message,
        accepted_at: Some(accepted_at),
    };
    let tell = async |home: &Home, done: Vec<Witness>| {
        ledger.open_link(LinkOpening { done, ..opening(&home.link, "e") }).await.unwrap()
    };
    let lost_at = ledger.now().await.unwrap();
    let kept = witness(&jane, "kept", receipt.broker_message_id, lost_at);
    assert_eq!(tell(&jane, vec![kept]).await.ledger_went_back, None);
    let lost = |home: &Home| witness(home, "lost", MessageId::from_bytes([9; 16]), lost_at);
    bench.advance(std::time::Duration::from_secs(5));
    let first = tell(&jane, vec![lost(&jane)]).await.ledger_went_back.unwrap();
    assert_eq!(first.noticed_by, jane.link.node.to_string());
    assert!(first.ends_at <= first.upto && first.upto <= first.noticed_at, "{first:?}");
    bench.advance(std::time::Duration::from_secs(5));
    let early = Witness { accepted_at: Some(first.ends_at), ..lost(&carl) };
    assert_eq!(tell(&carl, vec![early]).await.ledger_went_back, Some(first.clone()), "the same loss");
    assert_eq!(tell(&carl, vec![]).await.ledger_went_back, Some(first));
    assert_eq!(bench.count("went_back").await, 1);
}
