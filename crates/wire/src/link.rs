//! `/v1/link`: a node and its broker, JSON text frames. `n` correlates a question with its answer.

mod ask;
mod close;
mod frame;
mod negotiate;
mod rows;
mod send;
#[cfg(test)]
mod tests;

pub use crate::ask::{AnswerResult, MemberRow, NodeQuestion, Question, StatusAnswer, TopicRow};

pub use ask::{Answer, Ask, NodeAsk};
pub use close::*;
pub use frame::{BadFrame, Rows, ToBroker, ToNode};
pub use negotiate::*;
pub use rows::{Ack, AckRef, Acked, MailRow, Nack, ReceiptRow};
pub use send::*;
