//! An opaque place in one log.

use std::fmt;
use std::str::FromStr;

use crate::clock::Timestamp;
use crate::error::Malformed;
use crate::id::MessageId;

/// Changes when a log is reset or restored, so that an old cursor is told instead of silently skipping.
pub type Epoch = u32;

/// The last row a reader has, or the start of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cursor {
    /// Before the first row: the empty text.
    Start,
    /// After this row.
    After {
        /// The row's instant, unique and rising within its log.
        at: Timestamp,
        /// The row's id: the authority for noticing a restore.
        id: MessageId,
        /// The log's epoch when the cursor was made.
        epoch: Epoch,
    },
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cursor::Start => Ok(()),
            Cursor::After { at, id, epoch } => {
                let micros = at.as_micros();
                // Printed from integers: a float would round the last digits.
                write!(f, "{}.{:06}000:{id}:{epoch}", micros / 1_000_000, micros % 1_000_000)
            }
        }
    }
}

impl FromStr for Cursor {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        if text.is_empty() {
            return Ok(Cursor::Start);
        }
        let parsed = parse_after(text).ok_or(Malformed::new("cursor", "a cursor as it was given"))?;
        // One place has one spelling; anything else was not given by us.
        if parsed.to_string() == text {
            Ok(parsed)
        } else {
            Err(Malformed::new("cursor", "a cursor as it was given"))
        }
    }
}

fn parse_after(text: &str) -> Option<Cursor> {
    let mut parts = text.splitn(3, ':');
    let (instant, id, epoch) = (parts.next()?, parts.next()?, parts.next()?);
    let (seconds, fraction) = instant.split_once('.')?;
    if fraction.len() != 9 || seconds.len() > 12 {
        return None;
    }
    let seconds: i64 = seconds.parse().ok().filter(|seconds| *seconds >= 0)?;
    let micros: i64 = fraction.strip_suffix("000")?.parse().ok()?;
    let at = Timestamp::from_micros(seconds.checked_mul(1_000_000)?.checked_add(micros)?);
    Some(Cursor::After { at, id: id.parse().ok()?, epoch: epoch.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

    #[test]
    fn a_cursor_prints_its_instant_with_nine_decimals_and_parses_back() {
        let cursor = Cursor::After {
            at: Timestamp::from_micros(1_798_761_600_000_042),
            id: ID.parse().unwrap(),
            epoch: 3,
        };
        assert_eq!(cursor.to_string(), format!("1798761600.000042000:{ID}:3"));
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        assert_eq!("".parse(), Ok(Cursor::Start));
        assert_eq!(Cursor::Start.to_string(), "");
    }

    #[test]
    fn forged_and_misspelt_cursors_are_refused() {
        for bad in [
            "x".to_owned(),
            format!("1.000001001:{ID}:0"),
            format!("1.000001:{ID}:0"),
            format!("-1.000001000:{ID}:0"),
            format!("+1.000001000:{ID}:0"),
            format!("01.000001000:{ID}:0"),
            format!("1.000001000:{ID}"),
            format!("1.000001000:{ID}:-1"),
            format!("1.000001000:{ID}:00"),
            format!("1.000001000:{ID}:0:0"),
            format!("1.000001000:{}:0", ID.to_uppercase()),
            format!("99999999999999999999.000001000:{ID}:0"),
            "1".repeat(1 << 20),
        ] {
            assert!(bad.parse::<Cursor>().is_err(), "{}", &bad[..bad.len().min(60)]);
        }
    }
}
