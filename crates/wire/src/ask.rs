//! What a member may ask its broker through its node, and the answers.

use model::{
    ClientMessageId, ConversationId, DeliveryRung, Fingerprint, MemberId, MemberKind, MemberName, MessageId,
    NodeKey, NodeName, Timestamp, TopicName,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::auth::MemberRef;
use crate::error::ErrorBody;
use crate::link::AcceptedRow;
use crate::log;
use crate::text;

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

/// What a broker may ask a node. Bodies stay where they are.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum NodeQuestion {
    /// What the node holds about a message: a list of [`NodeRecord`].
    Explain {
        /// Under which id it was sent.
        #[serde(with = "text")]
        client_message_id: ClientMessageId,
        /// By whom; without it, by anybody at home there.
        #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
        sender: Option<MemberId>,
        /// What the broker calls it, once it does.
        #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
        broker_message_id: Option<MessageId>,
    },
}

/// One record of a node about a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "held", rename_all = "snake_case")]
pub enum NodeRecord {
    /// A row of its outbox.
    Outbox {
        /// Who sends it.
        #[schema(value_type = String)]
        #[serde(with = "text")]
        sender: MemberName,
        /// pending, inflight, done, dead or aborted.
        status: String,
        /// When it was handed over.
        #[schema(value_type = String)]
        #[serde(with = "text")]
        enqueued_at: Timestamp,
        /// Tries so far.
        attempts: u32,
        /// The last answer, in words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_error: Option<String>,
    },
    /// A row of its inbox.
    Inbox {
        /// For whom.
        #[schema(value_type = String)]
        #[serde(with = "text")]
        recipient: MemberName,
        /// When it came.
        #[schema(value_type = String)]
        #[serde(with = "text")]
        received_at: Timestamp,
        /// How far it got here.
        #[schema(value_type = String)]
        #[serde(with = "text")]
        rung: DeliveryRung,
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
#[derive(Debug, Serialize, Deserialize)]
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
    /// `open` or `closed`.
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

/// An invite, shown once.
#[derive(Serialize, Deserialize)]
pub struct Invite {
    /// The secret.
    pub token: String,
    /// Whose signature the joiner must see.
    #[serde(with = "text")]
    pub issuer_key: NodeKey,
    /// Where the broker says it is reached; without it, where the asker reached it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Its end.
    #[serde(with = "text")]
    pub expires_at: Timestamp,
    /// The only node that may use it.
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeName>,
}

/// An invite in a list; the secret is not there.
#[derive(Debug, Serialize, Deserialize)]
pub struct InviteRow {
    /// Names it for a revocation.
    pub id: String,
    /// The only node that may use it.
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeName>,
    /// What its person may decide.
    pub role: String,
    /// Its end.
    #[serde(with = "text")]
    pub expires_at: Timestamp,
    /// When a node joined by it.
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub used_at: Option<Timestamp>,
    /// When it was taken back.
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
}

/// What a token's bearer may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Send messages.
    Send,
    /// Read conversations.
    Read,
    /// Use the hub.
    Hub,
}

/// A token, shown once.
#[derive(Serialize, Deserialize)]
pub struct Token {
    /// The secret.
    pub token: String,
    /// What lists show of it.
    #[serde(flatten)]
    pub row: TokenRow,
}

/// A token in a list; the secret is not there.
#[derive(Debug, Serialize, Deserialize)]
pub struct TokenRow {
    /// Its number.
    pub id: u64,
    /// As whom it acts.
    #[serde(with = "text")]
    pub member: MemberName,
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// When it was made.
    #[serde(with = "text")]
    pub created_at: Timestamp,
    /// When it was taken back.
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
}

/// What a mesh's owner decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policies {
    /// `open` or `declared`.
    pub topics: String,
    /// Days an accepted id is remembered; nothing means for ever.
    pub dedupe_days: Option<u32>,
    /// `prefer_newest` or `prefer_oldest`.
    pub connections: String,
}

/// A change of policies; what is absent stays.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PolicyChange {
    /// `open` or `declared`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topics: Option<String>,
    /// Days an accepted id is remembered, or `permanent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedupe: Option<String>,
    /// `prefer_newest` or `prefer_oldest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<String>,
}

/// A webhook with its secret, shown once.
#[derive(Serialize, Deserialize)]
pub struct Webhook {
    /// `whsec_` and base64, as Standard Webhooks has it.
    pub secret: String,
    /// What lists show of it.
    #[serde(flatten)]
    pub row: WebhookRow,
}

/// A webhook in a list; the secret is not there.
#[derive(Debug, Serialize, Deserialize)]
pub struct WebhookRow {
    /// The member whose deliveries it gets.
    #[serde(with = "text")]
    pub name: MemberName,
    /// Where it goes.
    pub url: String,
    /// Topics delivered to it.
    #[serde(with = "text::list", default, skip_serializing_if = "Vec::is_empty")]
    pub topics: Vec<TopicName>,
    /// When it was made.
    #[serde(with = "text")]
    pub created_at: Timestamp,
    /// Until when the secret before the last rotation signs too.
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub old_secret_until: Option<Timestamp>,
    /// When it stopped, because the endpoint said that it is gone.
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub disabled_at: Option<Timestamp>,
    /// Why it stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled_reason: Option<String>,
    /// Rows not delivered yet.
    pub waiting: u64,
    /// Rows given up.
    pub parked: u64,
}

/// What the broker knows about an id.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct BrokerExplained {
    /// Who says so.
    pub observer: String,
    /// `accepted`, `retired`, `forgotten` or `never_seen`; with several records, of the first.
    pub verdict: String,
    /// One per sender that used the id, as far as the asker may know.
    pub records: Vec<ExplainedRecord>,
    /// What the nodes involved answered, or that they did not.
    pub homes: Vec<ExplainedHome>,
    /// Broker time of this answer.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub now: Timestamp,
}

/// One sender's use of an id.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ExplainedRecord {
    /// Who sent it.
    pub sender: MemberRef,
    /// Under which id.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub client_message_id: ClientMessageId,
    /// `accepted`, `retired` or `forgotten`.
    pub state: String,
    /// The rung all recipients reached, or how it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<String>,
    /// The first eight bytes of what was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint_prefix: Option<String>,
    /// The broker's id.
    #[schema(value_type = Option<String>)]
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub broker_message_id: Option<MessageId>,
    /// Its log.
    #[schema(value_type = Option<String>)]
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationId>,
    /// The log as the sender calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_name: Option<String>,
    /// Its place there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_id: Option<u64>,
    /// When it was accepted.
    #[schema(value_type = Option<String>)]
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub accepted_at: Option<Timestamp>,
    /// After which nobody may get it.
    #[schema(value_type = Option<String>)]
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub deliver_by: Option<Timestamp>,
    /// Until when the id is remembered.
    #[schema(value_type = Option<String>)]
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub remembered_until: Option<Timestamp>,
    /// Whether the message row still exists.
    pub history_available: bool,
    /// One per recipient.
    pub recipients: Vec<ExplainedRecipient>,
    /// One per webhook it is for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub webhooks: Vec<ExplainedWebhook>,
}

/// One recipient's copy, with the instant of every rung.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ExplainedRecipient {
    /// Who.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub name: MemberName,
    /// Its node, or nothing when the broker hosts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<String>,
    /// How far.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub rung: DeliveryRung,
    /// In the inbox.
    #[schema(value_type = Option<String>)]
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub delivered_at: Option<Timestamp>,
    /// Handed over.
    #[schema(value_type = Option<String>)]
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub notified_at: Option<Timestamp>,
    /// A turn began.
    #[schema(value_type = Option<String>)]
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub engaged_at: Option<Timestamp>,
    /// The turn ended.
    #[schema(value_type = Option<String>)]
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub processed_at: Option<Timestamp>,
    /// It ended below delivery.
    #[schema(value_type = Option<String>)]
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Why it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_code: Option<String>,
    /// Read.
    #[schema(value_type = Option<String>)]
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub read_at: Option<Timestamp>,
}

/// One webhook's copy.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ExplainedWebhook {
    /// The webhook's member.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub name: MemberName,
    /// `waiting`, `delivered` or `parked`.
    pub state: String,
    /// Tries of a row that waits.
    pub attempts: u32,
    /// The last answer to it, in a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_answer: Option<String>,
}

/// A node's part.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ExplainedHome {
    /// Which node.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub node: NodeName,
    /// What it holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<NodeRecord>,
    /// Whether it could not be asked, or did not answer in time.
    pub unreachable: bool,
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
