//! Which writes may wait on this host's disk, and in which order they must leave it.
//!
//! - A route that is not listed is [`RouteClass::Online`]: only what somebody thought about is ever stored.
//! - A path is matched by its decoded segments. What two servers could read differently is refused, not guessed.
//! - Two writes that could touch one resource overlap; overlapping writes never overtake each other.

use std::fmt;

use crate::error::Malformed;
use crate::limits;

/// What may become of a write while the upstream is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteClass {
    /// Adds something; waits, and is replayed under its key.
    Append,
    /// Changes something; waits, and is replayed under its key with a precondition.
    Replace,
    /// Is forwarded or refused, never stored.
    Online,
}

/// A path as it is matched: decoded once, without empty segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NormalPath {
    segments: Vec<String>,
}

/// Why a path is not matched at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathRefused {
    /// `.` or `..`, plain or encoded.
    #[error("the path climbs")]
    Climbs,
    /// An escape inside an escape, a broken escape, or bytes that are no text.
    #[error("the path is encoded twice, or not well")]
    Encoding,
    /// A slash, backslash or control character hidden in a segment.
    #[error("a segment of the path hides a separator or a control character")]
    Hidden,
}

/// One line of a route table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The method, in capitals.
    pub method: String,
    /// The path with `{name}` where any one segment stands.
    pub pattern: String,
    /// The class.
    pub class: RouteClass,
    /// The resource it writes to, with the pattern's names; without one the order is that of its session.
    pub order: Option<String>,
    /// It touches every resource of its kind: `order` is then the kind alone.
    pub barrier: bool,
    /// The answer carries an id; it waits only for callers that say they can do without.
    pub gives_id: bool,
    /// Field names the secret scan lets pass on this route.
    pub allowed_fields: Vec<String>,
}

/// The routes a relay knows, first match first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteTable {
    routes: Vec<Compiled>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Compiled {
    route: Route,
    segments: Vec<Segment>,
    order: Order,
}

/// A line's `order`, taken apart once: every request asks for its resource.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Order {
    /// Kept over the caller's session.
    Session,
    /// Over every resource of a kind.
    Every { scope: String },
    /// Over one resource of a kind.
    One { scope: String, named_by: Vec<Part> },
}

/// A piece of a resource's name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    /// This segment of the path.
    Segment(usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Text(String),
    Name(String),
}

/// A request's line of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matched<'table> {
    /// The line.
    pub route: &'table Route,
    /// What the order is kept over; nothing where it is kept over the caller's session.
    pub resource: Option<OrderKey>,
}

/// A group of writes that keep their order: `task:T-88`, or `task:*` for a barrier over all of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OrderKey {
    text: String,
    scope_bytes: usize,
}

/// What a barrier's key ends with.
const EVERY: &str = "*";
/// The kind of what has no resource.
const APPEND: &str = "append";

impl RouteClass {
    /// The word on the wire and at rest.
    pub const fn word(self) -> &'static str {
        match self {
            RouteClass::Append => "append",
            RouteClass::Replace => "replace",
            RouteClass::Online => "online",
        }
    }

    /// The class of that word.
    pub fn parse(word: &str) -> Option<Self> {
        [RouteClass::Append, RouteClass::Replace, RouteClass::Online]
            .into_iter()
            .find(|class| class.word() == word)
    }
}

impl NormalPath {
    /// Reads the path of a request, without its query.
    pub fn parse(path: &str) -> Result<Self, PathRefused> {
        let mut segments = Vec::new();
        for raw in path.split('/').filter(|segment| !segment.is_empty()) {
            if is_plain(raw) {
                segments.push(raw.to_owned());
                continue;
            }
            let segment = decode(raw)?;
            if segment == "." || segment == ".." {
                return Err(PathRefused::Climbs);
            }
            if segment.contains(|c: char| c == '/' || c == '\\' || c.is_control()) {
                return Err(PathRefused::Hidden);
            }
            // What is still an escape after one decoding would mean something else to a server that decodes twice.
            if is_escaped(&segment) {
                return Err(PathRefused::Encoding);
            }
            segments.push(segment);
        }
        Ok(Self { segments })
    }
}

impl fmt::Display for NormalPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}", self.segments.join("/"))
    }
}

impl RouteTable {
    /// A table of these lines.
    pub fn of(routes: Vec<Route>) -> Result<Self, Malformed> {
        if routes.len() > limits::RELAY_ROUTES_MAX {
            return Err(Malformed::new("route", "at most 1,000 routes"));
        }
        Ok(Self { routes: routes.into_iter().map(Compiled::of).collect::<Result<_, _>>()? })
    }

    /// The hub's own routes.
    pub fn built_in() -> Self {
        use RouteClass::{Append, Replace};
        let line = |method: &str, pattern: &str, class, order: Option<&str>| Route {
            method: method.to_owned(),
            pattern: pattern.to_owned(),
            class,
            order: order.map(str::to_owned),
            barrier: pattern.ends_with("bulk-status-sync"),
            gives_id: pattern == "/decisions",
            allowed_fields: Vec::new(),
        };
        let routes = vec![
            line("POST", "/progress", Append, None),
            line("POST", "/messages", Append, None),
            line("PATCH", "/messages/{id}/read", Append, Some("message:{id}")),
            line("POST", "/token-events", Append, None),
            line("POST", "/token-events/upsert", Append, None),
            line("POST", "/decisions", Append, None),
            line("PATCH", "/tasks/{id}", Replace, Some("task:{id}")),
            line("POST", "/tasks/bulk-status-sync", Replace, Some("task")),
            line("PATCH", "/decisions/{id}", Replace, Some("decision:{id}")),
            line("POST", "/decisions/{id}/resolve", Replace, Some("decision:{id}")),
            line("PATCH", "/workplans/{id}", Replace, Some("workplan:{id}")),
            line("PATCH", "/workstreams/{id}", Replace, Some("workplan:{id}")),
            line("DELETE", "/tasks/{id}", RouteClass::Online, Some("task:{id}")),
            line("DELETE", "/decisions/{id}", RouteClass::Online, Some("decision:{id}")),
            line("DELETE", "/workplans/{id}", RouteClass::Online, Some("workplan:{id}")),
            line("DELETE", "/workstreams/{id}", RouteClass::Online, Some("workplan:{id}")),
            line("DELETE", "/messages/{id}", RouteClass::Online, Some("message:{id}")),
        ];
        Self::of(routes).expect("the built-in lines are well formed")
    }

    /// The line of a request.
    pub fn find(&self, method: &str, path: &NormalPath) -> Option<Matched<'_>> {
        self.routes.iter().filter(|compiled| compiled.route.method == method).find_map(|compiled| {
            let is_it = compiled.matches(path);
            is_it.then(|| Matched { route: &compiled.route, resource: compiled.resource(path) })
        })
    }

    /// The resource a reader looks at: whatever the writes to the same path are ordered by.
    pub fn resource_of(&self, path: &NormalPath) -> Option<OrderKey> {
        self.routes
            .iter()
            .find(|compiled| matches!(compiled.order, Order::One { .. }) && compiled.matches(path))
            .and_then(|compiled| compiled.resource(path))
    }
}

impl Compiled {
    fn of(route: Route) -> Result<Self, Malformed> {
        let method = Malformed::new("method", "a write: POST, PUT, PATCH or DELETE");
        if !["POST", "PUT", "PATCH", "DELETE"].contains(&route.method.as_str()) {
            return Err(method);
        }
        if route.method == "DELETE" && route.class != RouteClass::Online {
            return Err(Malformed::new("class", "online for DELETE: a delete is never stored"));
        }
        let path = Malformed::new("path", "a path such as /notes/{id}");
        if !route.pattern.starts_with('/') {
            return Err(path);
        }
        let segments: Vec<Segment> =
            route.pattern.split('/').filter(|segment| !segment.is_empty()).map(Segment::of).collect();
        let order = Order::of(route.order.as_deref(), route.barrier, &segments)?;
        Ok(Self { route, segments, order })
    }

    /// Whether the path is one of this route.
    fn matches(&self, path: &NormalPath) -> bool {
        let is_there = |(wanted, found): (&Segment, &String)| match wanted {
            Segment::Text(text) => text == found,
            Segment::Name(_) => true,
        };
        self.segments.len() == path.segments.len() && self.segments.iter().zip(&path.segments).all(is_there)
    }

    /// What a path of this route writes to; nothing where the order is that of the caller's session.
    fn resource(&self, path: &NormalPath) -> Option<OrderKey> {
        match &self.order {
            Order::Session => None,
            Order::Every { scope } => Some(OrderKey::barrier(scope)),
            Order::One { scope, named_by } => {
                let pieces = named_by.iter().map(|part| match part {
                    Part::Text(text) => text.as_str(),
                    Part::Segment(place) => path.segments[*place].as_str(),
                });
                Some(OrderKey::new(scope, &pieces.collect::<String>()))
            }
        }
    }
}

impl Order {
    const MALFORMED: Malformed = Malformed::new(
        "order",
        "a kind and the path's names, such as note:{id}; a barrier's is the kind alone",
    );

    fn of(order: Option<&str>, barrier: bool, segments: &[Segment]) -> Result<Self, Malformed> {
        let Some(order) = order else { return Ok(Order::Session) };
        if barrier {
            let is_kind = !order.is_empty() && !order.contains([':', '{']);
            return if is_kind { Ok(Order::Every { scope: order.to_owned() }) } else { Err(Self::MALFORMED) };
        }
        let (scope, rest) = order.split_once(':').ok_or(Self::MALFORMED)?;
        let named_by = parts(rest, segments);
        let is_named = named_by.iter().any(|part| matches!(part, Part::Segment(_)));
        if scope.is_empty() || scope.contains('{') || !is_named {
            return Err(Self::MALFORMED);
        }
        Ok(Order::One { scope: scope.to_owned(), named_by })
    }
}

/// A resource's name with the pattern's names in it; what is none of them is text.
fn parts(mut text: &str, segments: &[Segment]) -> Vec<Part> {
    let place_of = |name: &str| {
        segments.iter().position(|segment| matches!(segment, Segment::Name(known) if known == name))
    };
    let (mut parts, mut plain) = (Vec::new(), String::new());
    while let Some((before, after)) = text.split_once('{') {
        plain.push_str(before);
        match after.split_once('}').and_then(|(name, rest)| Some((place_of(name)?, rest))) {
            Some((place, rest)) => {
                parts.extend([Part::Text(std::mem::take(&mut plain)), Part::Segment(place)]);
                text = rest;
            }
            None => {
                plain.push('{');
                text = after;
            }
        }
    }
    plain.push_str(text);
    parts.push(Part::Text(plain));
    parts
}

impl Segment {
    fn of(text: &str) -> Self {
        match text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
            Some(name) => Segment::Name(name.to_owned()),
            None => Segment::Text(text.to_owned()),
        }
    }
}

impl OrderKey {
    /// The key of one resource of a kind.
    pub fn new(scope: &str, resource: &str) -> Self {
        // A resource that calls itself `*` must not become a barrier.
        let resource = if resource == EVERY { "%2A" } else { resource };
        Self { text: format!("{scope}:{resource}"), scope_bytes: scope.len() }
    }

    /// The key over every resource of a kind.
    pub fn barrier(scope: &str) -> Self {
        Self { text: format!("{scope}:{EVERY}"), scope_bytes: scope.len() }
    }

    /// The key of a caller's appends to one route: they have no resource, only their own order.
    pub fn session(source: &str, route: &str) -> Self {
        Self::new(APPEND, &format!("{source} {route}"))
    }

    /// Whether it is of the kind that appends without a resource have.
    pub fn is_append(&self) -> bool {
        self.scope() == APPEND
    }

    /// A stored key.
    pub fn parse(text: &str) -> Option<Self> {
        let scope_bytes = text.find(':')?;
        Some(Self { text: text.to_owned(), scope_bytes })
    }

    /// The kind of resource.
    pub fn scope(&self) -> &str {
        &self.text[..self.scope_bytes]
    }

    /// Whether it stands for every resource of its kind.
    pub fn is_barrier(&self) -> bool {
        &self.text[self.scope_bytes + 1..] == EVERY
    }

    /// The text at rest.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether two writes could touch one resource.
    pub fn overlaps(&self, other: &OrderKey) -> bool {
        self.scope() == other.scope() && (self.text == other.text || self.is_barrier() || other.is_barrier())
    }
}

impl fmt::Display for OrderKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Whether a segment means what it says, whoever reads it: most do.
fn is_plain(raw: &str) -> bool {
    raw.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

fn decode(raw: &str) -> Result<String, PathRefused> {
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let (high, low) = (rest.next().and_then(nibble), rest.next().and_then(nibble));
            let (Some(high), Some(low)) = (high, low) else { return Err(PathRefused::Encoding) };
            bytes.push(high << 4 | low);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).map_err(|_| PathRefused::Encoding)
}

fn is_escaped(text: &str) -> bool {
    text.as_bytes()
        .windows(3)
        .any(|three| three[0] == b'%' && nibble(three[1]).is_some() && nibble(three[2]).is_some())
}

fn nibble(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
#[path = "route_class_tests.rs"]
mod tests;
