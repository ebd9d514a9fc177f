//! Any text as one piece of a path.

/// An id with a character that means something in an address is none of ours; it is asked about all the same.
pub fn segment(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b':' | b'-');
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_any_form_stands_in_a_path() {
        assert_eq!(segment("ci-4127.done"), "ci-4127.done");
        assert_eq!(segment("a/b?c=#d e%"), "a%2Fb%3Fc%3D%23d%20e%25");
    }
}
