//! Names that stand before secrets.

use std::borrow::Cow;

/// Names that always do.
const EXACT: &[&str] = &[
    "authorization",
    "cookie",
    "set_cookie",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "client_secret",
    "api_key",
    "apikey",
    "access_token",
    "refresh_token",
    "id_token",
    "auth_token",
    "bearer",
    "private_key",
    "credential",
    "credentials",
    "token",
    "dsn",
];

/// Endings that do when the value looks like one.
const SUFFIXES: &[&str] = &["_token", "_secret", "_key", "_password"];

/// Names with such an ending that never do.
const HARMLESS: &[&str] = &["idempotency_key", "cache_key", "sort_key"];

/// A value under a suspicious ending counts from this length on.
const SUFFIXED_BYTES_MIN: usize = 16;

/// What a name says about the values under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Suspicion {
    /// Nothing.
    None,
    /// A long value without spaces is a secret.
    Long,
    /// Any text is.
    Any,
}

/// Whether a header or parameter of this name carries a secret whatever its value.
pub fn is_secret_name(name: &str) -> bool {
    suspects(name) != Suspicion::None
}

/// What `name` says.
pub(super) fn suspects(name: &str) -> Suspicion {
    let name = &*normal(name);
    if EXACT.contains(&name) {
        return Suspicion::Any;
    }
    if HARMLESS.contains(&name) || name.ends_with("_id_key") {
        return Suspicion::None;
    }
    if SUFFIXES.iter().any(|suffix| name.ends_with(suffix)) { Suspicion::Long } else { Suspicion::None }
}

impl Suspicion {
    /// Whether `value` under such a name is a secret.
    pub(super) fn finds(self, value: &str) -> bool {
        match self {
            Suspicion::None => false,
            Suspicion::Long => value.len() >= SUFFIXED_BYTES_MIN && !value.contains(char::is_whitespace),
            Suspicion::Any => !value.is_empty(),
        }
    }

    /// What holds for a value below both names.
    pub(super) fn or(self, inner: Suspicion) -> Suspicion {
        match (self, inner) {
            (Suspicion::Any, _) | (_, Suspicion::Any) => Suspicion::Any,
            (Suspicion::Long, _) | (_, Suspicion::Long) => Suspicion::Long,
            (Suspicion::None, Suspicion::None) => Suspicion::None,
        }
    }
}

/// `apiKey`, `API-Key` and `api.key` are `api_key`.
pub(super) fn normal(name: &str) -> Cow<'_, str> {
    if is_normal(name.as_bytes()) { Cow::Borrowed(name) } else { Cow::Owned(normalised(name)) }
}

/// Most names are: words of small letters and digits with one `_` between two.
fn is_normal(name: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.split(|byte| *byte == b'_').all(|word| !word.is_empty() && word.iter().all(is_part))
}

fn normalised(name: &str) -> String {
    let letters: Vec<char> = name.trim().chars().collect();
    let mut normal = String::with_capacity(name.len() + 4);
    for (place, &letter) in letters.iter().enumerate() {
        if !letter.is_alphanumeric() {
            if !normal.ends_with('_') && !normal.is_empty() {
                normal.push('_');
            }
            continue;
        }
        let before = place.checked_sub(1).map(|before| letters[before]);
        let after = letters.get(place + 1);
        let begins = letter.is_uppercase()
            && before.is_some_and(|before| {
                before.is_lowercase()
                    || before.is_numeric()
                    || (before.is_uppercase() && after.is_some_and(|after| after.is_lowercase()))
            });
        if begins && !normal.ends_with('_') {
            normal.push('_');
        }
        normal.extend(letter.to_lowercase());
    }
    normal.trim_end_matches('_').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_normal_already_is_what_it_would_be_made() {
        for name in [
            "a",
            "api_key",
            "k2",
            "2_b",
            "input_tokens",
            "",
            "_",
            "_a",
            "a_",
            "a__b",
            "apiKey",
            "API-Key",
            "api.key",
            " a",
            "é",
            "naïve_key",
            "aB",
            "HTTPServer",
            "x9Y",
        ] {
            assert_eq!(normal(name), normalised(name), "{name:?}");
        }
        assert!(matches!(normal("access_token2"), Cow::Borrowed(_)));
        assert_eq!(normal("API-Key"), "api_key");
    }
}
