//! Why a link ends: the codes of its close frame.

/// A newer connection of the same node took over.
pub const CLOSE_REPLACED: u16 = 4003;
/// Another connection of this node holds the link.
pub const CLOSE_ALREADY_CONNECTED: u16 = 4004;
/// The member was removed.
pub const CLOSE_REVOKED: u16 = 4002;
/// A required feature is missing.
pub const CLOSE_FEATURE_UNAVAILABLE: u16 = 4010;
/// A feature's parameter makes no sense.
pub const CLOSE_FEATURE_PARAM_INVALID: u16 = 4011;
/// A feature's parameter is below what safety needs.
pub const CLOSE_FEATURE_BELOW_FLOOR: u16 = 4012;
/// The window stayed full without an ack.
pub const CLOSE_STALLED: u16 = 4408;
