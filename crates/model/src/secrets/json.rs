//! The scan of a JSON body as it stands.
//!
//! It walks the text itself, not a tree: a tree keeps one of two values with the same name, the disk keeps both.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::name::{self, Suspicion};
use super::value::looks_secret;
use crate::limits;

/// Texts inside texts are opened this deep.
const TEXT_DEPTH_MAX: u8 = 4;

/// The body is not JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the body is not JSON")]
pub struct NotJson;

/// Names a route lets pass.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allowed<'a>(pub &'a [String]);

impl Allowed<'_> {
    pub(super) fn lets(self, name: &str) -> bool {
        self.0.iter().any(|allowed| name::normal(allowed) == name::normal(name))
    }
}

/// The places of secret-looking fields, as JSON pointers without values; none means that the body may be stored.
pub fn scan_json(body: &[u8], allowed: Allowed<'_>) -> Result<Vec<String>, NotJson> {
    let mut scan = Scan { allowed, path: String::new(), found: Vec::new(), text_depth: 0 };
    scan.read(body)?;
    Ok(scan.found)
}

struct Scan<'a> {
    allowed: Allowed<'a>,
    path: String,
    found: Vec<String>,
    text_depth: u8,
}

impl Scan<'_> {
    fn read(&mut self, body: &[u8]) -> Result<(), NotJson> {
        let mut reader = serde_json::Deserializer::from_slice(body);
        Look { scan: self, suspicion: Suspicion::None }.deserialize(&mut reader).map_err(|_| NotJson)?;
        reader.end().map_err(|_| NotJson)
    }

    fn find(&mut self) {
        if self.found.len() < limits::SECRET_POINTERS_MAX {
            self.found.push(self.path.clone());
        }
    }

    fn text(&mut self, text: &str, suspicion: Suspicion) {
        if suspicion.finds(text) || looks_secret(text) {
            return self.find();
        }
        if self.text_depth < TEXT_DEPTH_MAX && text.trim_start().starts_with(['{', '[']) {
            let (kept, found) = (self.path.len(), self.found.len());
            self.text_depth += 1;
            // Text that only begins like JSON was looked at as text above.
            let _ = self.read(text.as_bytes());
            self.text_depth -= 1;
            self.path.truncate(kept);
            if self.found.len() > found {
                // A pointer does not reach into a text: the text itself is the place.
                self.found.truncate(found);
                self.find();
            }
        }
    }
}

struct Look<'s, 'a> {
    scan: &'s mut Scan<'a>,
    suspicion: Suspicion,
}

impl<'de> DeserializeSeed<'de> for Look<'_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Look<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.scan.text(text, self.suspicion);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let kept = self.scan.path.len();
        let mut place = 0_usize;
        loop {
            self.scan.path.push_str(&format!("/{place}"));
            let item = items.next_element_seed(Look { scan: self.scan, suspicion: self.suspicion })?;
            self.scan.path.truncate(kept);
            if item.is_none() {
                return Ok(());
            }
            place += 1;
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let kept = self.scan.path.len();
        while let Some(name) = fields.next_key::<String>()? {
            if looks_secret(&name) {
                // The name is the secret: the object that has it is the place.
                self.scan.find();
            } else {
                self.scan.path.push('/');
                self.scan.path.extend(name.split_inclusive(['~', '/']).flat_map(escaped));
            }
            let own = if self.scan.allowed.lets(&name) { Suspicion::None } else { name::suspects(&name) };
            let suspicion = self.suspicion.or(own);
            fields.next_value_seed(Look { scan: self.scan, suspicion })?;
            self.scan.path.truncate(kept);
        }
        Ok(())
    }
}

/// A piece of a name that has a character a pointer must spell otherwise at its end, or none.
fn escaped(piece: &str) -> [&str; 2] {
    match piece.as_bytes() {
        [.., b'~'] => [&piece[..piece.len() - 1], "~0"],
        [.., b'/'] => [&piece[..piece.len() - 1], "~1"],
        _ => [piece, ""],
    }
}
