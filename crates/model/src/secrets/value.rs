//! Values that are secrets under any name.

/// Whether `text` holds a private key, a known kind of token, or a password inside a URL.
pub fn looks_secret(text: &str) -> bool {
    holds_sign(text.as_bytes())
        && (holds_private_key(text)
            || holds_prefixed_token(text)
            || holds_bearer(text)
            || holds_jwt(text)
            || holds_url_password(text))
}

/// Whether the beginning of any of them is there at all: one pass instead of nine, and most text has none.
fn holds_sign(text: &[u8]) -> bool {
    text.iter().enumerate().any(|(place, byte)| {
        let begins = |sign: &[u8]| text[place..].starts_with(sign);
        match byte {
            b'-' => begins(b"-----BEGIN "),
            b'g' => begins(b"ghp_") || begins(b"github_pat_"),
            b's' => begins(b"sk-"),
            b'A' => begins(b"AKIA"),
            b'x' => begins(b"xox"),
            b'e' => begins(b"eyJ"),
            b':' => begins(b"://"),
            b'b' | b'B' => text[place..].get(..7).is_some_and(|word| word.eq_ignore_ascii_case(b"bearer ")),
            _ => false,
        }
    })
}

/// A kind of token that is known by how it begins.
struct Prefix {
    text: &'static str,
    /// What follows, at least so many.
    bytes_min: usize,
    /// Which characters may follow.
    part: fn(u8) -> bool,
    /// Only when a digit or a capital is among them: without one it is a word with dashes.
    mixed: bool,
}

const PREFIXES: &[Prefix] = &[
    Prefix { text: "ghp_", bytes_min: 8, part: is_word, mixed: false },
    Prefix { text: "github_pat_", bytes_min: 8, part: is_word, mixed: false },
    Prefix { text: "sk-", bytes_min: 12, part: is_word_or_dash, mixed: true },
    Prefix { text: "AKIA", bytes_min: 12, part: is_capital_or_digit, mixed: false },
];

const BEARER_BYTES_MIN: usize = 12;
const JWT_PART_BYTES_MIN: usize = 8;
const SLACK_BYTES_MIN: usize = 8;
/// A name without a password before the `@` of a URL is one person; this long it is a token.
const URL_TOKEN_BYTES_MIN: usize = 20;

fn holds_private_key(text: &str) -> bool {
    text.match_indices("-----BEGIN ").any(|(place, _)| {
        let line = &text[place..];
        let line = line[11..].split("-----").next().unwrap_or_default();
        line.len() < 64 && line.contains("PRIVATE KEY")
    })
}

fn holds_prefixed_token(text: &str) -> bool {
    PREFIXES.iter().any(|prefix| {
        starts(text, prefix.text).any(|rest| {
            let token = run(rest, prefix.part);
            token.len() >= prefix.bytes_min && (!prefix.mixed || is_mixed(token))
        })
    }) || holds_slack_token(text)
}

/// `xoxb-`, `xoxp-` and their kin.
fn holds_slack_token(text: &str) -> bool {
    starts(text, "xox").any(|rest| {
        let mut letters = rest.bytes();
        letters.next().is_some_and(|kind| kind.is_ascii_lowercase())
            && letters.next() == Some(b'-')
            && run(&rest[2..], is_word_or_dash).len() >= SLACK_BYTES_MIN
    })
}

fn holds_bearer(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    lower.match_indices("bearer ").any(|(place, word)| {
        let rest = text[place + word.len()..].trim_start_matches(' ');
        let token = run(rest, |byte| is_word_or_dash(byte) || b".~+/=".contains(&byte));
        // The first letter may be a capital of ordinary writing.
        token.len() >= BEARER_BYTES_MIN && is_mixed(&token[1..])
    })
}

/// Three parts of base64url, the first of which is the text `{"`.
fn holds_jwt(text: &str) -> bool {
    starts(text, "eyJ").any(|rest| {
        let token = run(rest, |byte| is_word_or_dash(byte) || byte == b'.');
        let mut parts = token.split('.');
        let long = |part: Option<&str>| part.is_some_and(|part| part.len() >= JWT_PART_BYTES_MIN);
        long(parts.next()) && long(parts.next()) && parts.next().is_some()
    })
}

fn holds_url_password(text: &str) -> bool {
    text.match_indices("://").any(|(place, mark)| {
        let rest = &text[place + mark.len()..];
        let end = rest
            .find(|c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'' | '<' | '>'))
            .unwrap_or(rest.len());
        let Some((person, _)) = rest[..end].rsplit_once('@') else { return false };
        match person.split_once(':') {
            Some((_, password)) => !password.is_empty(),
            None => person.len() >= URL_TOKEN_BYTES_MIN,
        }
    })
}

/// What follows `prefix` wherever it begins a word.
fn starts<'a>(text: &'a str, prefix: &'static str) -> impl Iterator<Item = &'a str> {
    text.match_indices(prefix).filter_map(move |(place, _)| {
        let before = text[..place].bytes().next_back();
        let is_inside = before.is_some_and(|byte| byte.is_ascii_alphanumeric());
        (!is_inside).then(|| &text[place + prefix.len()..])
    })
}

fn run(text: &str, part: impl Fn(u8) -> bool) -> &str {
    let end = text.bytes().position(|byte| !part(byte)).unwrap_or(text.len());
    &text[..end]
}

fn is_mixed(token: &str) -> bool {
    token.bytes().any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_word_or_dash(byte: u8) -> bool {
    is_word(byte) || byte == b'-'
}

fn is_capital_or_digit(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}
