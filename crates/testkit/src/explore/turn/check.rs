//! What must hold in every state.

use model::turn::TurnMark;

use super::state::State;
use model::limits;

/// A message has one first attempt, and every other is marked.
pub const TWO_FIRSTS: &str = "two unmarked attempts at one message";
/// An attempt follows an interruption.
pub const RUSHED: &str = "a rerun before the attempt before it was interrupted";
/// An agent has one open turn.
pub const TWO_OPEN: &str = "two open turns of one agent";
/// A message is ended once.
pub const TWO_REPLIES: &str = "two replies to one message";
/// The end brings its reply, and nothing else does.
pub const WITHOUT_REPLY: &str = "an ended turn without its reply";
/// Unasked, a message is run again once.
pub const TOO_OFTEN: &str = "run again more often than allowed, unasked";
/// A conversation keeps its order.
pub const OVERTAKEN: &str = "a later message was begun before an earlier one";

/// Within its lease a turn is its holder's.
pub const TAKEN: &str = "a turn was taken from its holder within its lease";

/// All of them.
pub const INVARIANTS: &[&str] =
    &[TWO_FIRSTS, RUSHED, TWO_OPEN, TWO_REPLIES, WITHOUT_REPLY, TOO_OFTEN, OVERTAKEN, TAKEN];

pub(super) fn check(s: &State, names: &mut Vec<&'static str>) {
    let unasked_max = u8::try_from(limits::TURN_RERUNS_MAX + 1).expect("reruns are few");
    let mut must_not = |broken: bool, name| names.extend(broken.then_some(name));
    let any = |broken: fn(&super::state::Message) -> bool| s.messages.iter().any(broken);
    must_not(any(|message| message.unmarked > 1), TWO_FIRSTS);
    must_not(any(|message| message.rushed), RUSHED);
    must_not(s.messages.iter().filter(|message| message.mark == TurnMark::Open).count() > 1, TWO_OPEN);
    must_not(any(|message| message.replies > 1), TWO_REPLIES);
    must_not(any(|message| message.mark == TurnMark::Over && message.replies == 0), WITHOUT_REPLY);
    must_not(s.messages.iter().any(|message| message.unasked > unasked_max), TOO_OFTEN);
    must_not(s.overtaken, OVERTAKEN);
    must_not(s.taken, TAKEN);
}
