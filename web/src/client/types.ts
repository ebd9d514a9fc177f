export type MemberRef = { id: string; name: string; kind: string };
export type MeshRef = { id: string; slug: string };
export type Message = {
  id: string; conversation: string; conversation_name?: string | undefined; history_id: number; sender: string; created_at: string;
  cursor: string; redelivered?: boolean | undefined; client_message_id: string; to: string; kind?: string | undefined; body: string;
  mentions?: Array<string> | undefined; reply_to?: string | null | undefined; priority?: string | undefined;
  expects_input?: boolean | undefined;
};
export type SubscribedMessage = Message & { sub?: string | null | undefined };
export type Escalation = {
  conversation_id: string; conversation_name: string; rev: number; message_id?: string | null | undefined;
  history_id: number; sender: string; question: string; created_at: string;
};
export type ToSubscriber =
  | (SubscribedMessage & { type: "message" })
  | { type: "subscribed"; conversation_id: string; sub?: string | null | undefined; cursor: string; generation: number }
  | { type: "reset"; conversation_id: string; sub?: string | null | undefined; generation: number }
  | { type: "error"; code: string; message: string; conversation_id?: string | null | undefined; sub?: string | null | undefined; first_available?: string | null | undefined }
  | { type: "pong" }
  | { type: "escalations"; escalations: Array<Escalation> }
  | (Escalation & { type: "input_requested" })
  | { type: "escalation_cleared"; conversation_id: string; conversation_name: string; rev: number };
export type Page = { messages: Array<Message>; cursor: string; before: string; has_more: boolean };
export type AcceptAnswer = {
  broker_message_id: string; client_message_id: string; conversation: string; history_id: number; created_at: string;
  duplicate: boolean; history_available?: boolean | null | undefined; first_seen_at?: string | null | undefined;
};
export type ConversationRow = {
  conversation: string; conversation_name: string; kind: string; state: string; head: number;
  last_at?: string | null | undefined; awaiting?: number | null | undefined; awaiting_rev: number; read: number; unread: number;
};
export type ConversationList = { conversations: Array<ConversationRow> };
export type ReadAnswer = { read: number; unread: number };
export type SessionAnswer = { member: MemberRef; role: string; mesh: MeshRef; expires_at: string; now: string };
export type TicketAnswer = { ticket: string; expires_at: string };
export type MemberRow = MemberRef & { home?: string | null | undefined; role: string };
export type NodeRow = { node: string; linked: boolean; last_seen_at: string; held: number };
export type MemberList = { members: Array<MemberRow>; nodes: Array<NodeRow> };
export type ExplainedRecipient = {
  name: string; home?: string | null | undefined; rung: string; delivered_at?: string | null | undefined; notified_at?: string | null | undefined;
  engaged_at?: string | null | undefined; processed_at?: string | null | undefined; ended_at?: string | null | undefined;
  ended_code?: string | null | undefined; read_at?: string | null | undefined;
};
export type ExplainedWebhook = { name: string; state: string; attempts: number; last_answer?: string | null | undefined };
export type ExplainedRecord = {
  sender: MemberRef; client_message_id: string; state: string; standing?: string | null | undefined; fingerprint_prefix?: string | null | undefined;
  broker_message_id?: string | null | undefined; conversation?: string | null | undefined; conversation_name?: string | null | undefined;
  history_id?: number | null | undefined; accepted_at?: string | null | undefined; deliver_by?: string | null | undefined;
  remembered_until?: string | null | undefined; history_available: boolean; recipients: Array<ExplainedRecipient>;
  webhooks?: Array<ExplainedWebhook> | undefined;
};
export type NodeRecord =
  | { held: "outbox"; sender: string; status: string; enqueued_at: string; attempts: number; last_error?: string | null | undefined }
  | { held: "inbox"; recipient: string; received_at: string; rung: string };
export type ExplainedHome = { node: string; records: Array<NodeRecord>; unreachable: boolean };
export type BrokerExplained = { observer: string; verdict: string; records: Array<ExplainedRecord>; homes: Array<ExplainedHome>; now: string };
