// Written by scripts/types.mjs from openapi.json. Not edited by hand.

/** 201 for a new message, 200 for one accepted before. */
export type AcceptAnswer = {
  /** The broker's id. */
  broker_message_id: string;
  /** The caller's key. */
  client_message_id: string;
  /** Its log. */
  conversation: string;
  /** When it was accepted. */
  created_at: string;
  /** Whether an earlier copy did it. */
  duplicate: boolean;
  /** For a duplicate: when the first copy came. */
  first_seen_at?: string | null | undefined;
  /** For a duplicate: whether the message row still exists. */
  history_available?: boolean | null | undefined;
  /** Its place there. */
  history_id: number;
};

/** What the broker knows about an id. */
export type BrokerExplained = {
  /** What the nodes involved answered, or that they did not. */
  homes: Array<ExplainedHome>;
  /** Broker time of this answer. */
  now: string;
  /** Who says so. */
  observer: string;
  /** One per sender that used the id, as far as the asker may know. */
  records: Array<ExplainedRecord>;
  /** `accepted`, `retired`, `forgotten` or `never_seen`; with several records, of the first. */
  verdict: string;
};

/** `GET /v1/conversations` */
export type ConversationList = {
  /** Last active first. */
  conversations: Array<ConversationRow>;
};

/** A conversation as a reader's list shows it. */
export type ConversationRow = {
  /** The place of the question it waits on. */
  awaiting?: number | null | undefined;
  /** How often `awaiting` changed: a later fact has a higher number. */
  awaiting_rev?: number | undefined;
  /** Its id. */
  conversation: string;
  /** `#topic` or `@other`, as this reader calls it. */
  conversation_name: string;
  /** Messages so far. */
  head: number;
  /** `topic` or `dm`. */
  kind: string;
  /** When the last one came. */
  last_at?: string | null | undefined;
  /** The last place this reader has read. */
  read?: number | undefined;
  /** `active`, `paused` or `closed`; only a closed one takes no messages. */
  state: string;
  /** Others' messages after that, counted up to 100. */
  unread?: number | undefined;
};

/** A conversation that waits for an answer. */
export type Escalation = {
  /** Which. */
  conversation_id: string;
  /** `#topic` or `@other`, as this reader calls it. */
  conversation_name: string;
  /** When it was asked. */
  created_at: string;
  /** The question's place in its log. */
  history_id: number;
  /** The question; nothing when its message was pruned. */
  message_id?: string | null | undefined;
  /** The question's first words. */
  question: string;
  /** How often it changed: a later fact has a higher number. */
  rev: number;
  /** Who asks. */
  sender: string;
};

/** A node's part. */
export type ExplainedHome = {
  /** Which node. */
  node: string;
  /** What it holds. */
  records?: Array<NodeRecord> | undefined;
  /** Whether it could not be asked, or did not answer in time. */
  unreachable: boolean;
};

/** One recipient's copy, with the instant of every rung. */
export type ExplainedRecipient = {
  /** In the inbox. */
  delivered_at?: string | null | undefined;
  /** It ended below delivery. */
  ended_at?: string | null | undefined;
  /** Why it did. */
  ended_code?: string | null | undefined;
  /** A turn began. */
  engaged_at?: string | null | undefined;
  /** Its node, or nothing when the broker hosts it. */
  home?: string | null | undefined;
  /** Who. */
  name: string;
  /** Handed over. */
  notified_at?: string | null | undefined;
  /** The turn ended. */
  processed_at?: string | null | undefined;
  /** Read. */
  read_at?: string | null | undefined;
  /** How far. */
  rung: string;
};

/** One sender's use of an id. */
export type ExplainedRecord = {
  /** When it was accepted. */
  accepted_at?: string | null | undefined;
  /** The broker's id. */
  broker_message_id?: string | null | undefined;
  /** Under which id. */
  client_message_id: string;
  /** Its log. */
  conversation?: string | null | undefined;
  /** The log as the sender calls it. */
  conversation_name?: string | null | undefined;
  /** After which nobody may get it. */
  deliver_by?: string | null | undefined;
  /** The first eight bytes of what was asked. */
  fingerprint_prefix?: string | null | undefined;
  /** Whether the message row still exists. */
  history_available: boolean;
  /** Its place there. */
  history_id?: number | null | undefined;
  /** One per recipient. */
  recipients: Array<ExplainedRecipient>;
  /** Until when the id is remembered. */
  remembered_until?: string | null | undefined;
  /** Who sent it. */
  sender: MemberRef;
  /** The rung all recipients reached, or how it ended. */
  standing?: string | null | undefined;
  /** `accepted`, `retired` or `forgotten`. */
  state: string;
  /** One per webhook it is for. */
  webhooks?: Array<ExplainedWebhook> | undefined;
};

/** One webhook's copy. */
export type ExplainedWebhook = {
  /** Tries of a row that waits. */
  attempts: number;
  /** The last answer to it, in a word. */
  last_answer?: string | null | undefined;
  /** The webhook's member. */
  name: string;
  /** `waiting`, `delivered` or `parked`. */
  state: string;
};

/** What a subscriber says. */
export type FromSubscriber = {
  /** Which log. */
  conversation_id: string;
  /** Where to begin: empty or absent is the start. */
  since_cursor?: string | undefined;
  /** The client's own tag for this subscription. */
  sub?: string | null | undefined;
  type: "subscribe";
} | {
  /** Which log. */
  conversation_id: string;
  type: "unsubscribe";
} | {
  type: "ping";
};

/** `GET /v1/members` */
export type MemberList = {
  /** By name. */
  members: Array<MemberRow>;
  /** By name. */
  nodes: Array<NodeRow>;
};

/** A member by id, name and kind. */
export type MemberRef = {
  /** Its id. */
  id: string;
  /** `person`, `agent` or `service`. */
  kind: string;
  /** Its name. */
  name: string;
};

/** A member as others see it. */
export type MemberRow = MemberRef & {
  /** Its node, or nothing when the broker hosts it. */
  home?: string | null | undefined;
  /** `owner` or `member`. */
  role: string;
};

/** A mesh by id and name. */
export type MeshRef = {
  /** Its id. */
  id: string;
  /** Its name where it was made. */
  slug: string;
};

/** A message as a carrier hands it on: the sender's fields and what the broker added. */
export type Message = MessageFields & {
  /** Its log. */
  conversation: string;
  /** The log as this reader calls it: `#topic` or `@other`. */
  conversation_name?: string | null | undefined;
  /** When the broker committed it. */
  created_at: string;
  /** The place after it in its log. */
  cursor: string;
  /** Its place in the log. */
  history_id: number;
  /** The broker's id. */
  id: string;
  /** Whether this recipient may have seen it before. */
  redelivered?: boolean | undefined;
  /** Who sent it. */
  sender: string;
};

/** What the sender asked, as it is kept in the outbox and carried to the recipient. */
export type MessageFields = {
  /** The text. */
  body: string;
  /** How to read the body. */
  body_version?: number | undefined;
  /** The sender's idempotency key. */
  client_message_id: string;
  /** A conversation of the caller's own. */
  corr_id?: string | null | undefined;
  /** An instant after which it must not be delivered. */
  deliver_by?: string | null | undefined;
  /** Whether the conversation waits for an answer. */
  expects_input?: boolean | undefined;
  /** Automatic replies before this one. */
  hops?: number | undefined;
  /** What it is for. */
  kind?: string | undefined;
  /** Members named, in order. */
  mentions?: Array<string> | undefined;
  /** Anything structured. */
  meta?: Record<string, unknown> | null | undefined;
  /** Order between conversations. */
  priority?: string | undefined;
  /** The message it answers. */
  reply_to?: string | null | undefined;
  /** Where it goes, as asked. */
  to: string;
  /** The same as seconds from the accept; never together with `deliver_by`. */
  ttl?: number | null | undefined;
};

/** One record of a node about a message. */
export type NodeRecord = {
  /** Tries so far. */
  attempts: number;
  /** When it was handed over. */
  enqueued_at: string;
  held: "outbox";
  /** The last answer, in words. */
  last_error?: string | null | undefined;
  /** Who sends it. */
  sender: string;
  /** pending, inflight, done, dead or aborted. */
  status: string;
} | {
  held: "inbox";
  /** When it came. */
  received_at: string;
  /** For whom. */
  recipient: string;
  /** How far it got here. */
  rung: string;
  /** What its turns have come to: open, interrupted, over or given_up. */
  turn?: string | null | undefined;
};

/** A node as members see it. */
export type NodeRow = {
  /** Messages held for its members. */
  held: number;
  /** The last time a link of it was opened or used. */
  last_seen_at: string;
  /** Whether its link is held by the broker that answers; another broker of the mesh may hold it. */
  linked: boolean;
  /** Its name. */
  node: string;
};

/** Rows from ONE read, so that what follows `cursor` joins them without gap or repeat. */
export type Page = {
  /** Where the page before this one ends; empty at the start. */
  before: string;
  /** The head of the log at this read. */
  cursor: string;
  /** Whether there is a page before this one. */
  has_more: boolean;
  /** Oldest first. */
  messages: Array<Message>;
};

/** `POST /v1/conversations/{id}/messages`: a [`SendRequest`] whose destination the address names. */
export type PostRequest = {
  /** The text. */
  body: string;
  /** The caller's key; minted when absent. */
  client_message_id?: string | null | undefined;
  /** A conversation of the caller's own. */
  corr_id?: string | null | undefined;
  /** An instant after which it must not be delivered. */
  deliver_by?: string | null | undefined;
  /** Whether the conversation waits for an answer. */
  expects_input?: boolean | null | undefined;
  /** Automatic replies before this one. */
  hops?: number | null | undefined;
  /** What it is for. */
  kind?: string | null | undefined;
  /** Members named. */
  mentions?: Array<string> | undefined;
  /** Anything structured. */
  meta?: Record<string, unknown> | null | undefined;
  /** now, next or low. */
  priority?: string | null | undefined;
  /** The message it answers. */
  reply_to?: string | null | undefined;
  /** The same as seconds from now. */
  ttl?: number | null | undefined;
};

/** What is left to read. */
export type ReadAnswer = {
  /** The last place this reader has read; it never goes back. */
  read: number;
  /** Others' messages after that, counted up to 100. */
  unread: number;
};

/** `POST /v1/conversations/{id}/read` */
export type ReadRequest = {
  /** Everything up to this place was read. */
  cursor: string;
};

/** `POST /v1/send` */
export type SendRequest = {
  /** The text. */
  body?: string | null | undefined;
  /** The caller's key; minted when absent. */
  client_message_id?: string | null | undefined;
  /** A conversation of the caller's own. */
  corr_id?: string | null | undefined;
  /** An instant after which it must not be delivered. */
  deliver_by?: string | null | undefined;
  /** Whether the conversation waits for an answer. */
  expects_input?: boolean | null | undefined;
  /** Automatic replies before this one. */
  hops?: number | null | undefined;
  /** What it is for. */
  kind?: string | null | undefined;
  /** Members named. */
  mentions?: Array<string> | undefined;
  /** Which mesh, when several are attached. */
  mesh?: string | null | undefined;
  /** The text under its older name. */
  message?: string | null | undefined;
  /** Anything structured. */
  meta?: Record<string, unknown> | null | undefined;
  /** now, next or low. */
  priority?: string | null | undefined;
  /** The message it answers. */
  reply_to?: string | null | undefined;
  /** `#topic`, `@name`, `@me` or a key. */
  to: string;
  /** The same as seconds from now. */
  ttl?: number | null | undefined;
};

/** Who is signed in. The session itself is an HttpOnly cookie. */
export type SessionAnswer = {
  /** When the session ends. */
  expires_at: string;
  /** As whom this browser reads and writes. */
  member: MemberRef;
  /** The mesh. */
  mesh: MeshRef;
  /** Broker time, for ages. */
  now: string;
  /** `owner` or `member`. */
  role: string;
};

/** `POST /v1/session`: the key of a sign-in link, taken from the address's fragment. */
export type SessionRequest = {
  /** Fifteen minutes, one use. */
  key: string;
};

/** A message as a subscription hands it on. */
export type SubscribedMessage = Message & {
  /** The subscription's tag. */
  sub?: string | null | undefined;
};

/** `POST /v1/tickets`: offered beside the subprotocol as `ticket.<T>`, for one socket. */
export type TicketAnswer = {
  /** When it ends. */
  expires_at: string;
  /** Thirty seconds, one use. */
  ticket: string;
};

/** What the broker says. */
export type ToSubscriber = (SubscribedMessage & {
  type: "message";
}) | {
  /** As it was asked for. */
  conversation_id: string;
  /** The place that was reached. */
  cursor: string;
  /** The log's generation. */
  generation: number;
  /** The subscription's tag. */
  sub?: string | null | undefined;
  type: "subscribed";
} | {
  /** As it was asked for. */
  conversation_id: string;
  /** The log's generation from now on. */
  generation: number;
  /** The subscription's tag. */
  sub?: string | null | undefined;
  type: "reset";
} | {
  /** See [`FrameError`]. */
  code: string;
  /** Of which conversation. */
  conversation_id?: string | null | undefined;
  /** With `cursor_expired`: where the log begins now. */
  first_available?: string | null | undefined;
  /** One sentence. */
  message: string;
  /** Of which subscription. */
  sub?: string | null | undefined;
  type: "error";
} | {
  type: "pong";
} | {
  /** Oldest question first. */
  escalations: Array<Escalation>;
  type: "escalations";
} | (Escalation & {
  type: "input_requested";
}) | {
  /** Which. */
  conversation_id: string;
  /** `#topic` or `@other`, as this reader calls it. */
  conversation_name: string;
  /** How often it changed: a later fact has a higher number. */
  rev: number;
  type: "escalation_cleared";
};
