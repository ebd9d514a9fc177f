//! What must still hold at the upstream when a waiting write arrives.

use std::fmt;

use super::{Outcome, Status};
use crate::clock::Timestamp;
use crate::limits;

/// The condition a write is sent under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// The resource still has this entity tag.
    Match(String),
    /// The resource has not changed since.
    UnmodifiedSince(Timestamp),
}

impl Precondition {
    /// The text at rest.
    pub fn to_text(&self) -> String {
        self.to_string()
    }

    /// A stored one.
    pub fn parse(text: &str) -> Option<Self> {
        match text.split_once(' ')? {
            ("match", tag) => Some(Precondition::Match(tag.to_owned())),
            ("unmodified-since", at) => at.parse().ok().map(Precondition::UnmodifiedSince),
            _ => None,
        }
    }

    /// What a replace is sent under: the caller's own condition, else the last tag seen of the resource, else that
    /// nothing changed since the caller asked.
    pub fn of(asked: Option<Precondition>, seen: Option<String>, now: Timestamp) -> Self {
        asked.or(seen.map(Precondition::Match)).unwrap_or(Precondition::UnmodifiedSince(now))
    }
}

impl fmt::Display for Precondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Precondition::Match(tag) => write!(f, "match {tag}"),
            Precondition::UnmodifiedSince(at) => write!(f, "unmodified-since {at}"),
        }
    }
}

/// The condition of an envelope that waited behind another of its resource: the tag that one left behind when it was
/// committed; otherwise its own, never none.
pub fn effective(own: Precondition, predecessor: Option<(Status, Outcome, Option<String>)>) -> Precondition {
    match predecessor {
        Some((Status::Done, Outcome::Committed, Some(tag))) => Precondition::Match(tag),
        Some(_) | None => own,
    }
}

/// The instant since which nothing may have changed a resource when a write of it is asked for. `estimate` is the
/// upstream's time and may be behind it: `own` is the upstream's stamp of the last change of the resource, and
/// `overlapping` are those of changes that may have been of it as well. Of these, one that stands far ahead of the upstream's
/// time belongs to a record with a wrong stamp and is not believed.
pub fn unchanged_since(
    estimate: Timestamp,
    own: Option<Timestamp>,
    overlapping: impl IntoIterator<Item = Timestamp>,
) -> Timestamp {
    let believed_upto = estimate + limits::RELAY_STAMP_AHEAD_MAX;
    let believed = overlapping.into_iter().filter(|at| *at <= believed_upto);
    believed.chain(own).fold(estimate, Timestamp::max)
}

/// What is known of the state a write was asked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// There is none: it adds something.
    Nothing,
    /// Its content.
    Kept,
    /// It is what the write before it made.
    Chained,
    /// Only the time is known at which it was asked.
    Undated,
    /// Its version.
    Version,
}

impl Base {
    /// Of a write with its `own` condition, `sent` with that one or with its predecessor's; `kept` says whether the
    /// content under its own condition was.
    pub fn of(own: Option<&Precondition>, sent: Option<&Precondition>, kept: bool) -> Self {
        match own {
            None => Base::Nothing,
            Some(_) if sent.is_some() && sent != own => Base::Chained,
            Some(_) if kept => Base::Kept,
            Some(Precondition::UnmodifiedSince(_)) => Base::Undated,
            Some(Precondition::Match(_)) => Base::Version,
        }
    }

    /// Why its content cannot be shown, for people.
    pub const fn why_unknown(self) -> Option<&'static str> {
        match self {
            Base::Nothing | Base::Kept => None,
            Base::Chained => Some("It was asked on what the write before it made."),
            Base::Undated => Some("No version had passed here: its condition is the time it was asked."),
            Base::Version => {
                Some("That version did not pass here with its content, or its content is not kept.")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ce18_a_replace_always_has_a_condition_from_the_best_source() {
        let now = Timestamp::from_micros(7);
        let tag = |text: &str| Some(text.to_owned());
        let since = Precondition::UnmodifiedSince(Timestamp::from_micros(3));
        for (asked, seen, expected) in [
            (tag("\"1\"").map(Precondition::Match), tag("\"2\""), Precondition::Match("\"1\"".into())),
            (Some(since.clone()), tag("\"2\""), since),
            (None, tag("\"2\""), Precondition::Match("\"2\"".into())),
            (None, None, Precondition::UnmodifiedSince(now)),
        ] {
            assert_eq!(Precondition::of(asked, seen, now), expected);
        }
    }

    #[test]
    fn a_stamp_far_ahead_of_the_upstreams_time_counts_for_its_own_resource_alone() {
        let (estimate, micro) = (Timestamp::from_micros(1_000_000_000), std::time::Duration::from_micros(1));
        let near = estimate + limits::RELAY_STAMP_AHEAD_MAX;
        let far = near + micro;
        let before = Timestamp::from_micros(1);
        for (own, overlapping, expected) in [
            (None, vec![], estimate),
            (Some(before), vec![before], estimate),
            (Some(far), vec![], far),
            (None, vec![far], estimate),
            (None, vec![far, near], near),
            (Some(estimate + micro), vec![far, near], near),
            (Some(far), vec![near], far),
        ] {
            assert_eq!(
                unchanged_since(estimate, own, overlapping.clone()),
                expected,
                "{own:?} {overlapping:?}"
            );
        }
    }

    #[test]
    fn a_chain_goes_on_from_a_committed_predecessor_and_from_its_own_condition_otherwise() {
        let own = || Precondition::Match("\"own\"".into());
        let tag = || Some("\"next\"".to_owned());
        assert_eq!(
            effective(own(), Some((Status::Done, Outcome::Committed, tag()))),
            Precondition::Match("\"next\"".into())
        );
        for predecessor in [
            None,
            Some((Status::Done, Outcome::Committed, None)),
            Some((Status::Conflict, Outcome::NotCommitted, tag())),
            Some((Status::Rejected, Outcome::NotCommitted, tag())),
            Some((Status::Expired, Outcome::Unknown, tag())),
            Some((Status::Cancelled, Outcome::Unknown, tag())),
            Some((Status::Superseded, Outcome::NotCommitted, tag())),
        ] {
            assert_eq!(effective(own(), predecessor), own());
        }
    }

    #[test]
    fn a_base_is_shown_when_it_is_the_one_the_write_was_sent_on() {
        let (one, two) = (Precondition::Match("\"1\"".into()), Precondition::Match("\"2\"".into()));
        let time = Precondition::UnmodifiedSince(Timestamp::from_micros(7));
        for (own, sent, kept, expected) in [
            (None, None, false, Base::Nothing),
            (Some(&one), None, true, Base::Kept),
            (Some(&one), Some(&one), true, Base::Kept),
            (Some(&one), Some(&two), true, Base::Chained),
            (Some(&time), Some(&two), false, Base::Chained),
            (Some(&one), Some(&one), false, Base::Version),
            (Some(&time), Some(&time), false, Base::Undated),
        ] {
            let base = Base::of(own, sent, kept);
            assert_eq!(base, expected, "{own:?} {sent:?} {kept}");
            assert_eq!(base.why_unknown().is_none(), matches!(base, Base::Nothing | Base::Kept));
        }
    }

    #[test]
    fn conditions_read_back() {
        let now = Timestamp::from_micros(1_798_761_600_000_001);
        for condition in [Precondition::Match("W/\"a b\"".into()), Precondition::UnmodifiedSince(now)] {
            assert_eq!(Precondition::parse(&condition.to_text()), Some(condition));
        }
        assert_eq!(Precondition::parse("never"), None);
    }
}
