//! Preconditions: what a caller had seen when it decided to write.

use crate::clock::Timestamp;
use crate::error::Malformed;
use crate::hub::Standing;

/// What must stand there for a write to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Precondition {
    /// Anything.
    #[default]
    None,
    /// One of these versions (`If-Match`). None of them is a version the hub gives: nothing fits.
    Versions(Vec<u64>),
    /// Any record (`If-Match: *`).
    Present,
    /// No record (`If-None-Match: *`).
    Absent,
    /// A record nobody changed after this instant (`If-Unmodified-Since`).
    UnchangedSince(Timestamp),
}

/// Something else stands there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreconditionFailed {
    /// Its version; none when there never was a record.
    pub current: Option<u64>,
}

impl Precondition {
    /// From the header lines. `If-Match` is exact and wins over an instant.
    pub fn parse(
        if_match: Option<&str>,
        if_none_match: Option<&str>,
        if_unmodified_since: Option<&str>,
    ) -> Result<Precondition, Malformed> {
        match (if_match, if_none_match, if_unmodified_since) {
            (Some(_), Some(_), _) => Err(Malformed::new("if-none-match", "absent when there is an if-match")),
            (Some(tags), None, _) if tags.trim() == "*" => Ok(Precondition::Present),
            (Some(tags), None, _) => Ok(Precondition::Versions(versions(tags))),
            (None, Some(tags), _) if tags.trim() == "*" => Ok(Precondition::Absent),
            (None, Some(_), _) => Err(Malformed::new("if-none-match", "* in a write")),
            (None, None, Some(instant)) => instant_of(instant).map(Precondition::UnchangedSince),
            (None, None, None) => Ok(Precondition::None),
        }
    }

    /// Whether what stands there is what the caller had seen.
    pub fn check(&self, standing: &Standing) -> Result<(), PreconditionFailed> {
        let fits = match (self, standing) {
            (Precondition::None, _) => true,
            (Precondition::Absent, Standing::Absent | Standing::Deleted { .. }) => true,
            (Precondition::Absent, Standing::Present(_)) => false,
            (Precondition::Present, Standing::Present(_)) => true,
            (Precondition::Versions(versions), Standing::Present(held)) => versions.contains(&held.version),
            (Precondition::UnchangedSince(instant), Standing::Present(held)) => held.updated_at <= *instant,
            (
                Precondition::Present | Precondition::Versions(_) | Precondition::UnchangedSince(_),
                Standing::Absent | Standing::Deleted { .. },
            ) => false,
        };
        if fits { Ok(()) } else { Err(PreconditionFailed { current: standing.version() }) }
    }
}

/// The versions among the tags. A weak or foreign tag is none of ours and can fit nothing.
fn versions(tags: &str) -> Vec<u64> {
    let version = |tag: &str| tag.trim().strip_prefix('"')?.strip_suffix('"')?.parse().ok();
    tags.split(',').filter_map(version).collect()
}

/// An HTTP date, whose seconds are cut, so that a change within its second counts as later; or an instant with
/// microseconds.
pub fn instant_of(text: &str) -> Result<Timestamp, Malformed> {
    let malformed = || Malformed::new("if-unmodified-since", "an HTTP date or an RFC 3339 instant");
    if let Ok(instant) = text.trim().parse() {
        return Ok(instant);
    }
    let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text.trim());
    date.map(|date| Timestamp::from_micros(date.as_microsecond())).map_err(|_| malformed())
}

/// An instant for the same header: as HTTP writes it where that says all of it, else with its microseconds.
pub fn instant_line(at: Timestamp) -> String {
    match jiff::Timestamp::from_microsecond(at.as_micros()) {
        Ok(date) if date.subsec_nanosecond() == 0 => date.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string(),
        Ok(_) | Err(_) => at.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::Held;

    fn present(version: u64, updated_at: i64) -> Standing {
        Standing::Present(Held { version, updated_at: Timestamp::from_micros(updated_at), body: Vec::new() })
    }

    #[test]
    fn each_precondition_fits_what_it_names_and_nothing_else() {
        let since = |micros| Precondition::UnchangedSince(Timestamp::from_micros(micros));
        let deleted = || Standing::Deleted { version: 3 };
        for (precondition, standing, fits) in [
            (Precondition::None, Standing::Absent, true),
            (Precondition::None, deleted(), true),
            (Precondition::None, present(1, 5), true),
            (Precondition::Absent, Standing::Absent, true),
            (Precondition::Absent, deleted(), true),
            (Precondition::Absent, present(1, 5), false),
            (Precondition::Present, Standing::Absent, false),
            (Precondition::Present, deleted(), false),
            (Precondition::Present, present(1, 5), true),
            (Precondition::Versions(vec![2, 3]), present(3, 5), true),
            (Precondition::Versions(vec![2]), present(3, 5), false),
            (Precondition::Versions(vec![3]), deleted(), false),
            (Precondition::Versions(vec![3]), Standing::Absent, false),
            (Precondition::Versions(Vec::new()), present(1, 5), false),
            (since(5), present(9, 5), true),
            (since(4), present(9, 5), false),
            (since(9), deleted(), false),
            (since(9), Standing::Absent, false),
        ] {
            let verdict = precondition.check(&standing);
            assert_eq!(verdict.is_ok(), fits, "{precondition:?} {standing:?}");
            if let Err(failed) = verdict {
                assert_eq!(failed.current, standing.version());
            }
        }
    }

    #[test]
    fn header_lines_are_read_as_http_writes_them() {
        let read = Precondition::parse;
        assert_eq!(read(None, None, None), Ok(Precondition::None));
        assert_eq!(read(Some("\"7\""), None, None), Ok(Precondition::Versions(vec![7])));
        assert_eq!(read(Some("\"7\", \"8\""), None, Some("x")), Ok(Precondition::Versions(vec![7, 8])));
        assert_eq!(read(Some("W/\"7\""), None, None), Ok(Precondition::Versions(Vec::new())));
        assert_eq!(read(Some("*"), None, None), Ok(Precondition::Present));
        assert_eq!(read(None, Some("*"), None), Ok(Precondition::Absent));
        let date = Precondition::UnchangedSince(Timestamp::from_micros(784_111_777_000_000));
        assert_eq!(read(None, None, Some("Sun, 06 Nov 1994 08:49:37 GMT")), Ok(date.clone()));
        assert_eq!(read(None, None, Some("1994-11-06T08:49:37Z")), Ok(date));
        let at = |micros: i64| Timestamp::from_micros(784_111_777_000_000 + micros);
        assert_eq!(instant_line(at(0)), "Sun, 06 Nov 1994 08:49:37 GMT");
        for micros in [0, 1, 999_999] {
            assert_eq!(instant_of(&instant_line(at(micros))), Ok(at(micros)));
        }
        assert!(read(None, Some("\"7\""), None).is_err());
        assert!(read(Some("*"), Some("*"), None).is_err());
        assert!(read(None, None, Some("yesterday")).is_err());
    }
}
