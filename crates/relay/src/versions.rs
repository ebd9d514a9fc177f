//! The versions of resources: what an answer says of them, and which writes may rest on them.
//!
//! - A tag belongs to a resource, not to a path: every name of the resource shows and changes the same one.
//! - A refused condition means that the tag is old; it is dropped, so that it refuses nothing else.
//! - The upstream's stamp of a change is a bound for its own resource: a record that is stamped in the future says little of
//!   others.
//! - A batch changes many resources: the versions its answer names are theirs, and without them all of its kind are
//!   unknown.

use http::header::ETAG;
use http::{HeaderMap, HeaderValue};
use mailbox::relay::LeftVersion;
use model::route_class::{NormalPath, OrderKey};
use model::{Timestamp, limits};
use sqlite::fault;
use wire::hub::CHANGED_AT_HEADER;
use wire::relay::versions_of;

use crate::relay::Shared;
use crate::tags::ReadBegun;

/// A bug that proofs plant: a tag belongs to the path it was seen at, and stays whatever a write is answered.
const TAGS_BY_PATH: &str = "relay.tags_by_path";

/// The name under which a tag is kept.
pub(crate) fn tag_key(resource: &OrderKey, path: &str) -> OrderKey {
    if fault::bug(TAGS_BY_PATH) {
        let path = NormalPath::parse(path).map(|path| path.to_string()).unwrap_or_default();
        return OrderKey::new("path", &path);
    }
    resource.clone()
}

/// A tag that may be kept.
fn keepable(resource: &OrderKey, path: &str, tag: Option<&HeaderValue>) -> Option<LeftVersion> {
    let tag = tag?.to_str().ok()?;
    if resource.is_barrier()
        || tag.len() > limits::RELAY_SOURCE_BYTES_MAX
        || model::secrets::looks_secret(tag)
    {
        return None;
    }
    Some(LeftVersion { order_key: tag_key(resource, path), tag: tag.to_owned() })
}

/// Keeps the tag that a read showed, and tells what was kept.
pub(crate) fn read(
    shared: &Shared,
    resource: &OrderKey,
    path: &str,
    answered: &HeaderMap,
    begun: ReadBegun,
) -> Option<LeftVersion> {
    let seen = keepable(resource, path, answered.get(ETAG))?;
    shared.tags.read(&seen.order_key, &seen.tag, begun).then_some(seen)
}

/// A write to `resource` was answered with success: what it left is kept, and what was known before is not.
pub(crate) fn changed(
    shared: &Shared,
    resource: &OrderKey,
    path: &str,
    answered: &HeaderMap,
    batch: Option<&[u8]>,
) -> Vec<LeftVersion> {
    if let Some(at) = changed_at(answered) {
        shared.stamps.changed(resource, at);
    }
    let own = keepable(resource, path, answered.get(ETAG));
    if fault::bug(TAGS_BY_PATH) {
        own.into_iter().for_each(|left| shared.tags.changed(&left.order_key, Some(left.tag)));
        return Vec::new();
    }
    let mut left = batch.map(|said| of_batch(resource, said)).unwrap_or_default();
    if left.is_empty() {
        shared.tags.changed(resource, own.as_ref().map(|left| left.tag.clone()));
        left.extend(own);
    } else {
        left.iter().for_each(|left| shared.tags.changed(&left.order_key, Some(left.tag.clone())));
    }
    left
}

/// A write to `resource` found another state than it was asked on.
pub(crate) fn clashed(shared: &Shared, resource: &OrderKey) {
    if !fault::bug(TAGS_BY_PATH) {
        shared.tags.changed(resource, None);
    }
}

/// The instant since which nothing may have changed `resource` when a write of it is asked for now.
pub(crate) fn unchanged_since(shared: &Shared, resource: &OrderKey) -> Timestamp {
    shared.stamps.unchanged_since(resource, shared.upstream.now())
}

/// The versions that an answer about a batch names.
pub(crate) fn of_batch(resource: &OrderKey, said: &[u8]) -> Vec<LeftVersion> {
    let said = serde_json::from_slice(said).unwrap_or_default();
    let versions = versions_of(&said).into_iter();
    versions.map(|(id, tag)| LeftVersion { order_key: OrderKey::new(resource.scope(), &id), tag }).collect()
}

/// Whether an answer speaks of a version that is not there any more.
pub(crate) const fn is_clash(status: u16) -> bool {
    matches!(status, 409 | 412)
}

fn changed_at(headers: &HeaderMap) -> Option<Timestamp> {
    headers.get(CHANGED_AT_HEADER)?.to_str().ok()?.parse().ok()
}
