//! A message's `meta`: an object in canonical form (RFC 8785).
//!
//! Canonical JSON merges payloads that differ (the last of two equal keys wins, large integers lose
//! digits), so whatever cannot survive it is refused before a fingerprint is taken.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::error::Malformed;
use crate::limits;

/// Integers beyond this lose digits in a double.
const INTEGER_MAX: u64 = (1 << 53) - 1;

const MALFORMED: Malformed = Malformed::new(
    "meta",
    "a JSON object of at most 8 KiB and 32 levels, no key twice, no integer beyond 2^53-1",
);

/// A non-empty JSON object in its canonical form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Meta(String);

impl Meta {
    /// `None` for an empty object: absent, null and `{}` mean the same.
    pub fn parse(json: &str) -> Result<Option<Meta>, Malformed> {
        let value = parse_strictly(json)?;
        match value {
            Value::Null => Ok(None),
            Value::Object(map) if map.is_empty() => Ok(None),
            Value::Object(_) => {
                let canonical = serde_json_canonicalizer::to_string(&value).map_err(|_| MALFORMED)?;
                if canonical.len() > limits::META_BYTES_MAX {
                    Err(MALFORMED)
                } else {
                    Ok(Some(Meta(canonical)))
                }
            }
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Err(MALFORMED),
        }
    }

    /// The canonical text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Any JSON that survives its canonical form, for the fingerprint of a whole request.
pub fn parse_canonical(json: &[u8]) -> Result<Value, Malformed> {
    let malformed =
        Malformed::new("body", "JSON of at most 32 levels, no key twice, no integer beyond 2^53-1");
    let text = std::str::from_utf8(json).map_err(|_| malformed.clone())?;
    parse_strictly(text).map_err(|_| malformed)
}

fn parse_strictly(json: &str) -> Result<Value, Malformed> {
    let mut reader = serde_json::Deserializer::from_str(json);
    let value = Strict { depth: 0 }.deserialize(&mut reader).map_err(|_| MALFORMED)?;
    reader.end().map_err(|_| MALFORMED)?;
    Ok(value)
}

/// Builds a [`Value`] while refusing what canonical JSON would merge.
#[derive(Clone, Copy)]
struct Strict {
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Strict {
    fn deeper<E: serde::de::Error>(self) -> Result<Strict, E> {
        if self.depth >= limits::META_DEPTH_MAX {
            Err(E::custom("too deep"))
        } else {
            Ok(Strict { depth: self.depth + 1 })
        }
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON without duplicate keys or oversized integers")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        if value > INTEGER_MAX {
            Err(E::custom("integer too large"))
        } else {
            Ok(Value::Number(value.into()))
        }
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        if value.unsigned_abs() > INTEGER_MAX {
            Err(E::custom("integer too large"))
        } else {
            Ok(Value::Number(value.into()))
        }
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        // An integer too large for i64 and u64 arrives here as a float and would lose its digits.
        if value.fract() == 0.0 && value.abs() > INTEGER_MAX as f64 {
            return Err(E::custom("integer too large"));
        }
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut seen = HashSet::new();
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if !seen.insert(key.clone()) {
                return Err(serde::de::Error::custom("key twice"));
            }
            map.insert(key, entries.next_value_seed(inner)?);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_null_and_empty_are_the_same() {
        assert_eq!(Meta::parse("null"), Ok(None));
        assert_eq!(Meta::parse("{}"), Ok(None));
        assert_eq!(Meta::parse("  {  } "), Ok(None));
    }

    #[test]
    fn spelling_does_not_matter_but_values_do() {
        let canonical = |json| Meta::parse(json).unwrap().unwrap();
        assert_eq!(canonical(r#"{"b":1,"a":2}"#), canonical(r#"{ "a": 2, "b": 1.0 }"#));
        assert_eq!(canonical(r#"{"a":"\u00e9"}"#), canonical(r#"{"a":"é"}"#));
        assert_ne!(canonical(r#"{"a":1}"#), canonical(r#"{"a":"1"}"#));
        assert_eq!(
            canonical(r#"{"b":{"d":"é","c":[true,null]},"a":1}"#).as_str(),
            r#"{"a":1,"b":{"c":[true,null],"d":"é"}}"#
        );
    }

    #[test]
    fn what_canonical_json_would_merge_is_refused() {
        let deep = format!("{}1{}", r#"{"a":"#.repeat(33), "}".repeat(33));
        let wide = format!(r#"{{"a":"{}"}}"#, "x".repeat(limits::META_BYTES_MAX));
        for bad in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":{"b":1,"b":2}}"#,
            r#"{"a":9007199254740993}"#,
            r#"{"a":-9007199254740993}"#,
            r#"{"a":1e400}"#,
            r#"{"a":100000000000000000000}"#,
            r#"{"a":"\ud800"}"#,
            "[1]",
            "1",
            "",
            r#"{"a":1} x"#,
            "\u{feff}{}",
            &deep,
            &wide,
        ] {
            assert_eq!(Meta::parse(bad), Err(MALFORMED), "{}", &bad[..bad.len().min(60)]);
        }
        assert!(Meta::parse(r#"{"a":9007199254740991}"#).is_ok());
    }
}
