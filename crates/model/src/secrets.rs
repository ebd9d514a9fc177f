//! What looks like a secret, so that it never reaches the disk.
//!
//! - A body is looked at whole, names and values, twins of one name included: whatever a reader of the stored
//!   bytes could see was seen here first.
//! - A finding names the place, never the value.
//! - Numbers, booleans and null are never secrets: `input_tokens` counts, it does not open anything.
//! - Nothing is altered: a body is free of secrets, or it is not stored.

mod json;
mod name;
mod value;

pub use json::{Allowed, NotJson, scan_json};
pub use name::is_secret_name;
pub use value::looks_secret;

use crate::limits;

/// The first secret-looking parameter's name of a query, as it stands after the question mark.
pub fn scan_query(query: &str, allowed: Allowed<'_>) -> Option<String> {
    query.split('&').find_map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (unescaped(name), unescaped(value));
        let named = !allowed.lets(&name) && name::suspects(&name).finds(&value);
        (named || looks_secret(&value) || looks_secret(&name)).then(|| {
            // A name that is itself the secret is not repeated.
            if looks_secret(&name) { "?".to_owned() } else { name }
        })
    })
}

/// Text for people as it may be kept: withheld whole when it looks secret, cut at a bound.
pub fn storable_text(text: &str) -> String {
    if looks_secret(text) {
        return "withheld: it looks like a secret".to_owned();
    }
    text[..text.floor_char_boundary(limits::LAST_ERROR_BYTES_MAX)].to_owned()
}

/// Escapes undone as a form does; what cannot be undone is looked at as it stands.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let escape = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match (byte, escape.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'%', Some(value)) => {
                bytes.push(value);
                rest = &tail[2..];
            }
            (b'+', _) => {
                bytes.push(b' ');
                rest = tail;
            }
            (other, _) => {
                bytes.push(other);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests;
