//! Bytes as hexadecimal text, two lower-case digits a byte.

/// The text of `bytes`.
pub fn encode(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |half: u8| char::from(DIGITS[usize::from(half)]);
    let mut text = String::with_capacity(2 * bytes.len());
    text.extend(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
    text
}

/// The bytes of `text`, which has two digits of either case for each.
pub fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    if text.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = digit(pair[0])? * 16 + digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bytes_are_each_others() {
        let all: Vec<u8> = (0..=255).collect();
        let bytes: [u8; 256] = all.clone().try_into().unwrap();
        assert_eq!(encode(&bytes[..17]), "000102030405060708090a0b0c0d0e0f10");
        assert_eq!(decode(&encode(&bytes)), Some(bytes));
        assert_eq!(decode("FFfe"), Some([255, 254]));
        for malformed in ["", "f", "+f", "fg", "é", "fff"] {
            assert_eq!(decode::<1>(malformed), None, "{malformed}");
        }
    }
}
