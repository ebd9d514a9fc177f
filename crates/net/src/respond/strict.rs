//! JSON that every reader understands alike: no key twice, nothing after the value, bounded depth, text that is
//! text, numbers that are numbers.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use model::limits::REQUEST_DEPTH_MAX as DEPTH_MAX;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Walks `bytes` once and keeps nothing.
pub(super) fn check(bytes: &[u8]) -> Result<(), serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    Walk { depth: 0 }.deserialize(&mut reader)?;
    reader.end()
}

#[derive(Clone, Copy)]
struct Walk {
    depth: usize,
}

/// A key, borrowed from the input where it has no escapes.
struct Key;

impl Walk {
    fn deeper<E: Error>(self) -> Result<Walk, E> {
        if self.depth < DEPTH_MAX {
            Ok(Walk { depth: self.depth + 1 })
        } else {
            Err(E::custom("nested too deep"))
        }
    }
}

impl<'de> DeserializeSeed<'de> for Walk {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let inner = self.deeper()?;
        while items.next_element_seed(inner)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let inner = self.deeper()?;
        let mut seen = Seen::default();
        while let Some(key) = entries.next_key_seed(Key)? {
            if !seen.insert(key) {
                return Err(A::Error::custom("a key stands twice"));
            }
            entries.next_value_seed(inner)?;
        }
        Ok(())
    }
}

/// The keys of an object so far. Most have so few that comparing them costs less than hashing them.
#[derive(Default)]
struct Seen<'de> {
    first: Vec<Cow<'de, str>>,
    more: HashSet<Cow<'de, str>>,
}

impl<'de> Seen<'de> {
    const FEW: usize = 16;

    /// Whether the key is new.
    fn insert(&mut self, key: Cow<'de, str>) -> bool {
        if self.first.contains(&key) {
            return false;
        }
        if self.first.len() < Self::FEW {
            self.first.push(key);
            return true;
        }
        self.more.insert(key)
    }
}

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Cow<'de, str>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(key))
    }

    fn visit_str<E>(self, key: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(key.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_json_passes() {
        let deepest = format!("{}1{}", "[".repeat(DEPTH_MAX), "]".repeat(DEPTH_MAX));
        for good in [
            "null",
            " {\"a\":1,\"b\":{\"a\":[1,-2,3.5,true,null,\"\\ud83d\\ude00 é\"]}} ",
            "{\"a\":{\"x\":1},\"b\":{\"x\":1}}",
            deepest.as_str(),
        ] {
            assert!(check(good.as_bytes()).is_ok(), "{good}");
        }
    }

    #[test]
    fn a_key_that_stands_twice_is_found_among_few_and_among_many() {
        for keys in [2, Seen::FEW, Seen::FEW + 1, 10 * Seen::FEW] {
            let object = |last: usize| {
                let keys = (0..keys).chain([last]).map(|key| format!("\"k{key}\":1"));
                format!("{{{}}}", keys.collect::<Vec<_>>().join(","))
            };
            assert!(check(object(keys).as_bytes()).is_ok(), "{keys} keys");
            for twice in [0, keys - 1] {
                assert!(check(object(twice).as_bytes()).is_err(), "key {twice} of {keys}");
            }
        }
    }

    #[test]
    fn what_two_readers_could_understand_differently_is_refused() {
        let too_deep = format!("{}1{}", "[".repeat(DEPTH_MAX + 1), "]".repeat(DEPTH_MAX + 1));
        let bomb = "[".repeat(10_000);
        for bad in [
            "",
            "{",
            "{\"a\":1,\"a\":2}",
            "{\"a\":1,\"\\u0061\":2}",
            "{\"m\":{\"k\":1,\"k\":1}}",
            "{\"a\":1}{\"a\":1}",
            "{\"a\":1} x",
            "\"\\ud800\"",
            "{\"\\ud800\":1}",
            "1e400",
            "NaN",
            "01",
            "{a:1}",
            "'a'",
            "\u{feff}{}",
            too_deep.as_str(),
            bomb.as_str(),
        ] {
            assert!(check(bad.as_bytes()).is_err(), "{:.60}", bad);
        }
        for bad in [&b"\"\xff\""[..], b"{\"\xc3\x28\":1}", b"\"\xed\xa0\x80\"", b"\"\0\""] {
            assert!(check(bad).is_err(), "{bad:?}");
        }
    }
}
