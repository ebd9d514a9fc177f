//! What happened to a mesh's files, in sentences for people.

use std::time::Duration;

use mailbox::{InboxRestored, InboxWentBack, LedgerWentBack, WentBack};
use model::{Timestamp, limits};
use wire::local::Notice;

/// As long as an inbox keeps bodies: behind that nothing that came again is there to be looked at.
const SHOWN_FOR: Duration = Duration::from_secs(limits::INBOX_RETENTION_DAYS as u64 * 24 * 3600);

/// What is recent enough to be shown.
pub(crate) fn notices(mesh: &str, went_back: &WentBack, now: Timestamp) -> Vec<Notice> {
    let recent = |noticed_at: Timestamp| now.since(noticed_at) <= SHOWN_FOR;
    let restored =
        went_back.restored.iter().filter(|it| recent(it.restored_at)).map(|it| of_restore(mesh, it));
    // A restored inbox that lacks nothing is told to the broker all the same.
    let inbox = went_back.inbox.iter().filter(|it| recent(it.noticed_at) && it.lacking() > 0);
    let inbox = inbox.map(|it| of_inbox(mesh, it));
    let ledger = went_back.ledger.iter().filter(|it| recent(it.noticed_at)).map(|it| of_ledger(mesh, it));
    restored.chain(inbox).chain(ledger).collect()
}

fn of_restore(mesh: &str, it: &InboxRestored) -> Notice {
    let InboxRestored { restored_at, backup_at, waiting } = it;
    let message =
        format!("the mailbox of mesh {mesh} was restored at {restored_at} from a backup of {backup_at}");
    let marked = format!(
        "{waiting} messages waited in the backup. They may have been worked on since, so they are marked redelivered."
    );
    let queued = format!(
        "What callers queued here after {backup_at} and had not left by {restored_at} is gone; its ids are free again."
    );
    Notice { check: "inbox_restored".to_owned(), message, more: vec![marked, queued] }
}

fn of_inbox(mesh: &str, it: &InboxWentBack) -> Notice {
    let InboxWentBack { noticed_at, ends_at, back, is_complete, .. } = *it;
    let lacking = it.lacking();
    let message = format!(
        "the mailbox of mesh {mesh} went back to an older copy: {back} of {lacking} messages it lacked are there again"
    );
    let gone = lacking.saturating_sub(back);
    let rest = match (is_complete, gone) {
        (true, 0) => "The broker sent them again, marked redelivered.".to_owned(),
        (true, gone) => format!("{gone} are gone: the broker does not keep them any more."),
        (false, _) => "The broker sends the others again, marked redelivered.".to_owned(),
    };
    let queued = format!(
        "What callers queued here after {ends_at} and had not left by {noticed_at} is gone; its ids are free again."
    );
    Notice { check: "inbox_went_back".to_owned(), message, more: vec![rest, queued] }
}

fn of_ledger(mesh: &str, it: &LedgerWentBack) -> Notice {
    let LedgerWentBack { noticed_at, ends_at, upto, noticed_by, sent_again } = it;
    let message = format!(
        "the ledger of mesh {mesh} went back to an older copy: this node sent {sent_again} messages again"
    );
    let lost = format!(
        "What senders without a node (HTTP, page, hub) gave it between {ends_at} and {upto} is lost unless they send it \
         again."
    );
    let noticed = format!("Noticed at {noticed_at}, by {noticed_by}.");
    Notice { check: "ledger_went_back".to_owned(), message, more: vec![lost, noticed] }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 24 * 3600 * 1_000_000;

    fn at(day: i64) -> Timestamp {
        Timestamp::from_micros(day * DAY)
    }

    fn inbox(back: u64, is_complete: bool) -> WentBack {
        let inbox = InboxWentBack { noticed_at: at(9), from: 8, to: 3, ends_at: at(7), back, is_complete };
        WentBack { inbox: Some(inbox), ..WentBack::default() }
    }

    #[test]
    fn what_came_again_and_what_is_gone_is_counted() {
        for (back, is_complete, counted, rest) in [
            (0, false, "0 of 5", "sends the others again"),
            (5, true, "5 of 5", "sent them again"),
            (3, true, "3 of 5", "2 are gone"),
        ] {
            let notice = notices("home", &inbox(back, is_complete), at(10)).remove(0);
            assert!(notice.message.contains(counted), "{notice:?}");
            assert!(notice.more[0].contains(rest), "{notice:?}");
            assert!(notice.more[1].contains(&at(7).to_string()), "{notice:?}");
        }
    }

    #[test]
    fn a_loss_of_the_ledger_names_its_span() {
        let noticed_by = "lab".to_owned();
        let ledger =
            LedgerWentBack { noticed_at: at(9), ends_at: at(6), upto: at(8), noticed_by, sent_again: 4 };
        let notice =
            notices("home", &WentBack { ledger: Some(ledger), ..WentBack::default() }, at(10)).remove(0);
        assert!(notice.message.contains("sent 4 messages again"), "{notice:?}");
        assert!(
            notice.more[0].contains(&at(6).to_string()) && notice.more[0].contains(&at(8).to_string()),
            "{notice:?}"
        );
    }

    #[test]
    fn a_restore_says_what_is_marked_and_what_is_gone() {
        let restored = InboxRestored { restored_at: at(9), backup_at: at(6), waiting: 2 };
        let inbox =
            InboxWentBack { noticed_at: at(9), from: 3, to: 3, ends_at: at(6), back: 0, is_complete: true };
        let went_back = WentBack { restored: Some(restored), inbox: Some(inbox), ledger: None };
        let told = notices("home", &went_back, at(10));
        assert_eq!(told.len(), 1, "an inbox that lacks nothing went nowhere: {told:?}");
        assert_eq!(told[0].check, "inbox_restored");
        assert!(told[0].message.contains(&at(6).to_string()), "{told:?}");
        assert!(
            told[0].more[0].starts_with("2 messages") && told[0].more[0].contains("redelivered"),
            "{told:?}"
        );
        assert_eq!(notices("home", &went_back, at(40)), []);
    }

    #[test]
    fn what_happened_long_ago_is_not_shown() {
        assert_eq!(notices("home", &inbox(5, true), at(39)).len(), 1);
        assert_eq!(notices("home", &inbox(5, true), at(40)).len(), 0);
        assert_eq!(notices("home", &WentBack::default(), at(9)).len(), 0);
    }
}
