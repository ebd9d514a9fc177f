//! What a member may ask its broker through its node, and the answers.

mod explain;
mod manage;

use model::{
    ClientMessageId, ConversationId, DeliveryRung, Fingerprint, MemberId, MemberKind, MemberName, MessageId,
    NodeName, Timestamp, TopicName,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::auth::MemberRef;
use crate::error::ErrorBody;
use crate::link::AcceptedRow;
use crate::log;
use crate::text;

pub use explain::{
    BrokerExplained, ExplainedHome, ExplainedRecipient, ExplainedRecord, ExplainedWebhook, NodeQuestion,
    NodeRecord,
};
pub use manage::{Invite, InviteRow, Policies, PolicyChange, Scope, Token, TokenRow, Webhook, WebhookRow};

/// A question. Who may ask what is the broker's to decide; the answer's type stands beside each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Question {
    /// A page of a topic's log: [`log::Page`].
    TopicHistory {
        /// Which.
        #[serde(with = "text")]
        topic: TopicName,
        /// The page.
        #[serde(flatten)]
        page: log::PageRequest,
    },
    /// A page of any log the asker may read: [`log::Page`].
    Conversation {
        /// Which.
        #[serde(with = "text")]
        conversation: ConversationId,
        /// The page.
        #[serde(flatten)]
        page: log::PageRequest,
    },
    /// The asker's conversations, last active first: a list of [`ConversationRow`].
    Conversations,
    /// The mesh's members: a list of [`MemberRow`].
    Members,
    /// The mesh's topics: a list of [`TopicRow`].
    Topics,
    /// Makes a topic and subscribes the asker: [`TopicRow`].
    TopicCreate {
        /// Its name.
        #[serde(with = "text")]
        topic: TopicName,
    },
    /// Delivers the topic to the asker from now on; repeating it changes nothing: [`Done`].
    TopicSubscribe {
        /// Which.
        #[serde(with = "text")]
        topic: TopicName,
    },
    /// Stops that; repeating it changes nothing: [`Done`].
    TopicUnsubscribe {
        /// Which.
        #[serde(with = "text")]
        topic: TopicName,
    },
    /// What became of an id; with a fence an absent one is retired: [`StatusAnswer`].
    MessageStatus {
        /// Whose.
        #[serde(with = "text")]
        sender: MemberId,
        /// Which.
        #[serde(with = "text")]
        client_message_id: ClientMessageId,
        /// What was asked under it.
        #[serde(with = "text")]
        request_fingerprint: Fingerprint,
        /// When it first went on the wire, in broker time.
        #[serde(with = "text")]
        first_attempt_at: Timestamp,
        /// Retire the id when no copy was accepted.
        fence: bool,
    },
    /// Everything the broker knows about a message's or a caller's id: [`BrokerExplained`].
    Explain {
        /// Either.
        id: String,
    },
    /// How far each recipient's copy of an own message came: a list of [`RecipientRung`].
    Rungs {
        /// Which message.
        #[serde(with = "text")]
        id: MessageId,
    },
    /// Makes a member at home on the asker's node: [`MemberRow`].
    MemberRegister {
        /// Its name.
        #[serde(with = "text")]
        name: MemberName,
        /// What it is.
        #[serde(with = "text")]
        kind: MemberKind,
    },
    /// Removes a member, for ever (owner): [`Done`].
    MemberRemove {
        /// Who.
        #[serde(with = "text")]
        name: MemberName,
    },
    /// An invite for one join (owner): [`Invite`].
    InviteCreate {
        /// The only node that may use it.
        #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
        node: Option<NodeName>,
    },
    /// Invites that are not forgotten yet (owner): a list of [`InviteRow`].
    Invites,
    /// Takes an unused invite back (owner): [`Done`].
    InviteRevoke {
        /// As [`InviteRow`] shows it.
        id: String,
    },
    /// A token for direct HTTP callers; makes a service member when the name is new (owner): [`Token`].
    TokenCreate {
        /// As whom it acts.
        #[serde(with = "text")]
        member: MemberName,
        /// What it may do.
        scopes: Vec<Scope>,
    },
    /// All tokens, revoked ones included (owner): a list of [`TokenRow`].
    Tokens,
    /// Takes a token back (owner): [`Done`].
    TokenRevoke {
        /// As [`TokenRow`] shows it.
        id: u64,
    },
    /// A key with which the asker's browser signs in: [`SignIn`](crate::session::SignIn).
    SignIn,
    /// The mesh's policies: [`Policies`].
    Policies,
    /// Changes those that are named (owner): [`Policies`].
    PoliciesSet(PolicyChange),
    /// Makes a member whose deliveries are pushed to `url`, or gives a service the broker hosts that way to
    /// receive (owner): [`Webhook`].
    WebhookCreate {
        /// The member's name.
        #[serde(with = "text")]
        name: MemberName,
        /// Where it goes.
        url: String,
        /// Topics delivered to it from now on; direct messages and mentions come besides.
        #[serde(with = "text::list", default, skip_serializing_if = "Vec::is_empty")]
        topics: Vec<TopicName>,
    },
    /// All webhooks (owner): a list of [`WebhookRow`].
    Webhooks,
    /// A new secret; the old one signs beside it for a while (owner): [`Webhook`].
    WebhookRotate {
        /// The member's name.
        #[serde(with = "text")]
        name: MemberName,
    },
    /// Starts a disabled webhook again; what waited is tried at once (owner): [`WebhookRow`].
    WebhookEnable {
        /// The member's name.
        #[serde(with = "text")]
        name: MemberName,
    },
    /// Removes a webhook with its subscriptions and what waits for it; the member stays (owner): [`Done`].
    WebhookRemove {
        /// The member's name.
        #[serde(with = "text")]
        name: MemberName,
    },
}

/// The answer to a question: a value of the question's own, or a refusal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerResult {
    /// The value.
    Ok(Box<RawValue>),
    /// The refusal, with its HTTP status.
    Refused {
        /// As HTTP would say it.
        status: u16,
        /// Why.
        #[serde(flatten)]
        error: ErrorBody,
    },
}

/// It is so now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {}

/// The answer to [`Question::MessageStatus`].
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum StatusAnswer {
    /// This very message.
    Accepted(AcceptedRow),
    /// Another message under the id.
    AcceptedOtherFingerprint,
    /// Retired before.
    Retired,
    /// No copy was accepted.
    Absent,
    /// The window may have passed.
    Unknown,
}

/// A member as others see it.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct MemberRow {
    /// Who.
    #[serde(flatten)]
    pub member: MemberRef,
    /// Its node, or nothing when the broker hosts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<String>,
    /// `owner` or `member`.
    pub role: String,
}

/// A topic as a member sees it.
#[derive(Debug, Serialize, Deserialize)]
pub struct TopicRow {
    /// Its name.
    #[serde(with = "text")]
    pub topic: TopicName,
    /// Its log.
    #[serde(with = "text")]
    pub conversation: ConversationId,
    /// Messages so far.
    pub head: u64,
    /// Whether the asker is subscribed.
    pub subscribed: bool,
}

/// A conversation as a reader's list shows it.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ConversationRow {
    /// Its id.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub conversation: ConversationId,
    /// `#topic` or `@other`, as this reader calls it.
    pub conversation_name: String,
    /// `topic` or `dm`.
    pub kind: String,
    /// `active`, `paused` or `closed`; only a closed one takes no messages.
    pub state: String,
    /// Messages so far.
    pub head: u64,
    /// When the last one came.
    #[schema(value_type = Option<String>)]
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub last_at: Option<Timestamp>,
    /// The place of the question it waits on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaiting: Option<u64>,
    /// How often `awaiting` changed: a later fact has a higher number.
    #[serde(default)]
    pub awaiting_rev: u64,
    /// The last place this reader has read.
    #[serde(default)]
    pub read: u64,
    /// Others' messages after that, counted up to 100.
    #[serde(default)]
    pub unread: u64,
}

/// One recipient's copy.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecipientRung {
    /// For whom.
    #[serde(with = "text")]
    pub recipient: MemberId,
    /// How far.
    #[serde(with = "text")]
    pub rung: DeliveryRung,
}

#[cfg(test)]
mod tests {
    use super::{NodeRecord, StatusAnswer};
    use crate::link::{Ask, BadFrame, ToBroker, ToNode};

    const ID: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

    /// Each question in the form a node sends it.
    const QUESTIONS: &[&str] = &[
        r#""what":"topic_history","topic":"alerts","limit":3"#,
        r#""what":"conversation","conversation":"01890a5d-ac96-774b-bcce-b302099a8057""#,
        r#""what":"conversations""#,
        r#""what":"members""#,
        r#""what":"topics""#,
        r#""what":"topic_create","topic":"alerts""#,
        r#""what":"topic_subscribe","topic":"alerts""#,
        r#""what":"topic_unsubscribe","topic":"alerts""#,
        r#""what":"explain","id":"ci-4127-done""#,
        r#""what":"rungs","id":"01890a5d-ac96-774b-bcce-b302099a8057""#,
        r#""what":"member_register","name":"ci","kind":"agent""#,
        r#""what":"member_remove","name":"ci""#,
        r#""what":"invite_create","node":"lab""#,
        r#""what":"invite_create""#,
        r#""what":"invites""#,
        r#""what":"invite_revoke","id":"00ff""#,
        r#""what":"token_create","member":"ci","scopes":["send","read","hub"]"#,
        r#""what":"tokens""#,
        r#""what":"token_revoke","id":3"#,
        r#""what":"policies""#,
        r#""what":"policies_set","topics":"declared","dedupe":"30""#,
        r#""what":"webhook_create","name":"deploys","url":"https://example.org/","topics":["alerts"]"#,
        r#""what":"webhooks""#,
        r#""what":"webhook_rotate","name":"deploys""#,
        r#""what":"webhook_enable","name":"deploys""#,
        r#""what":"webhook_remove","name":"deploys""#,
    ];

    #[test]
    fn each_question_survives_the_way_as_its_node_writes_it() {
        for question in QUESTIONS {
            let text = format!(r#"{{"type":"ask","n":7,"as":"{ID}",{question}}}"#);
            let frame = ToBroker::parse(&text).unwrap_or_else(|error| panic!("{question}: {error}"));
            assert_eq!(frame.text(), text);
            assert!(matches!(frame, ToBroker::Ask(Ask { n: 7, .. })));
        }
    }

    #[test]
    fn each_answer_about_an_id_survives_the_way() {
        let accepted = format!(
            r#"{{"state":"accepted","status":200,"request_fingerprint":"{}","broker_message_id":"{ID}","conversation":"{ID}","history_id":7,"created_at":"2027-01-01T00:00:00.000000Z","duplicate":true,"history_available":true}}"#,
            "ab".repeat(32)
        );
        for text in [
            accepted.as_str(),
            r#"{"state":"accepted_other_fingerprint"}"#,
            r#"{"state":"retired"}"#,
            r#"{"state":"absent"}"#,
            r#"{"state":"unknown"}"#,
        ] {
            let answer: StatusAnswer = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&answer).unwrap(), text);
        }
    }

    #[test]
    fn a_brokers_question_and_a_nodes_answer_survive_the_way() {
        let text =
            format!(r#"{{"type":"ask","n":3,"what":"explain","client_message_id":"m1","sender":"{ID}"}}"#);
        let frame = ToNode::parse(&text).unwrap();
        assert_eq!(frame.text(), text);
        assert!(matches!(frame, ToNode::Ask(_)));
        let unknown = ToNode::parse(r#"{"type":"ask","n":3,"what":"everything"}"#);
        assert!(matches!(unknown, Err(BadFrame::Question { n: 3, .. })));
        let text = r#"{"type":"answer","n":3,"result":{"ok":[]}}"#;
        assert!(matches!(ToBroker::parse(text), Ok(ToBroker::Answer(_))));
        for text in [
            r#"{"held":"outbox","sender":"jane","status":"dead","enqueued_at":"2027-01-01T00:00:00.000000Z","attempts":3,"last_error":"404"}"#,
            r#"{"held":"inbox","recipient":"ci","received_at":"2027-01-01T00:00:00.000000Z","rung":"delivered"}"#,
        ] {
            let record: NodeRecord = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&record).unwrap(), text);
        }
    }

    #[test]
    fn a_question_nobody_knows_keeps_its_number() {
        for bad in [r#""what":"everything""#, r#""what":"topic_create","topic":"Not A Name""#, r#""x":1"#] {
            let text = format!(r#"{{"type":"ask","n":7,"as":"{ID}",{bad}}}"#);
            assert!(matches!(ToBroker::parse(&text), Err(BadFrame::Question { n: 7, .. })), "{bad}");
        }
        assert!(matches!(ToBroker::parse(r#"{"type":"ask","what":"members"}"#), Err(BadFrame::Shape(_))));
    }
}
