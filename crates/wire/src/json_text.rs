//! Text as JSON writes it, many bytes at a time: of a long message most of what is written is its body.

/// Looked at together, as a processor can.
const BLOCK_BYTES: usize = 32;
const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends `text` between quotes.
pub(crate) fn push(into: &mut Vec<u8>, text: &str) {
    into.push(b'"');
    let (blocks, rest) = text.as_bytes().as_chunks::<BLOCK_BYTES>();
    for block in blocks {
        // Without a way out in the middle, which would be a byte at a time.
        if block.iter().fold(true, |plain, byte| plain & is_plain(*byte)) {
            into.extend_from_slice(block);
        } else {
            block.iter().for_each(|byte| push_byte(into, *byte));
        }
    }
    rest.iter().for_each(|byte| push_byte(into, *byte));
    into.push(b'"');
}

/// Whether it stands for itself. Of what is not ASCII every byte does.
const fn is_plain(byte: u8) -> bool {
    byte >= b' ' && byte != b'"' && byte != b'\\'
}

fn push_byte(into: &mut Vec<u8>, byte: u8) {
    match byte {
        b'"' | b'\\' => into.extend([b'\\', byte]),
        0x08 => into.extend(*b"\\b"),
        b'\t' => into.extend(*b"\\t"),
        b'\n' => into.extend(*b"\\n"),
        0x0c => into.extend(*b"\\f"),
        b'\r' => into.extend(*b"\\r"),
        0..b' ' => {
            into.extend([b'\\', b'u', b'0', b'0', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]])
        }
        _ => into.push(byte),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pushed(text: &str) -> String {
        let mut json = Vec::new();
        push(&mut json, text);
        String::from_utf8(json).unwrap()
    }

    #[test]
    fn every_byte_of_ascii_is_written_as_the_library_does_at_every_place_of_a_block() {
        for byte in 0..128_u8 {
            for before in 0..=BLOCK_BYTES {
                let text = format!("{}{}é", "x".repeat(before), char::from(byte));
                assert_eq!(pushed(&text), serde_json::to_string(&text).unwrap(), "{byte} after {before}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_is_written_as_the_library_does(text in "(?s)[ -~\\x00-\\x1fé\u{2028}😀]{0,200}") {
            prop_assert_eq!(pushed(&text), serde_json::to_string(&text).unwrap());
        }
    }
}
