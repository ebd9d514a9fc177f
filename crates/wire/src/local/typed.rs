//! What people and agents type, as the wire knows it.

/// A destination's usual spellings: `#` opens a comment in a shell, so `topic:NAME` says the same, and a bare name
/// is a member.
pub fn destination(typed: &str) -> String {
    let is_key = typed.len() == 64 && typed.bytes().all(|byte| byte.is_ascii_hexdigit());
    match typed.strip_prefix("topic:") {
        Some(topic) => format!("#{topic}"),
        None if typed.starts_with(['#', '@']) || is_key => typed.to_owned(),
        None => format!("@{typed}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_spellings_become_the_wires() {
        let key = "ab".repeat(32);
        for (typed, wire) in [
            ("me", "@me"),
            ("@me", "@me"),
            ("ci", "@ci"),
            ("@ci", "@ci"),
            ("#alerts", "#alerts"),
            ("topic:alerts", "#alerts"),
            (key.as_str(), key.as_str()),
        ] {
            assert_eq!(destination(typed), wire);
        }
    }
}
