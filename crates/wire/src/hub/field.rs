//! How fields are read: a line is not empty, and a field that must be there cannot be taken away.

use model::Timestamp;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// Text with something in it.
pub(super) fn line<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.trim().is_empty() { Err(D::Error::custom("must not be empty")) } else { Ok(text) }
}

/// The same in a patch; null is refused, because the field must be there.
pub(super) fn kept_line<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    line(deserializer).map(Some)
}

/// Any value in a patch of a field that must be there.
pub(super) fn kept<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// An instant, or none.
pub(super) fn instant<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    match text.as_deref().map(str::parse::<Timestamp>) {
        Some(Err(_)) => Err(D::Error::custom("must be an RFC 3339 instant")),
        Some(Ok(_)) | None => Ok(text),
    }
}
