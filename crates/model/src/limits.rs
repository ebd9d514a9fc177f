//! Every bound of the product, named once, with its reason.

use std::num::NonZeroU32;
use std::time::Duration;

/// A message body: larger things are files, not messages.
pub const BODY_BYTES_MAX: usize = 64 * 1024;
/// `meta` in its canonical form.
pub const META_BYTES_MAX: usize = 8 * 1024;
/// Nesting of `meta`: deeper trees serve nobody and cost stack.
pub const META_DEPTH_MAX: usize = 32;
/// Members one message may mention.
pub const MENTIONS_MAX: usize = 16;
/// A `reply_to` or `corr_id`.
pub const REFERENCE_BYTES_MAX: usize = 128;
/// A caller's idempotency key.
pub const CLIENT_MESSAGE_ID_BYTES_MAX: usize = 128;
/// A member, node or topic name.
pub const NAME_BYTES_MAX: usize = 63;
/// Automatic replies in one chain, so that two agents cannot talk for ever unattended.
pub const HOPS_MAX: u8 = 64;
/// A request on any HTTP door.
pub const REQUEST_BYTES_MAX: usize = 256 * 1024;
/// A handshake request.
pub const EXCHANGE_BYTES_MAX: usize = 16 * 1024;
/// A WebSocket frame in either direction.
pub const FRAME_BYTES_MAX: usize = 1024 * 1024;
/// Request headers.
pub const HEADER_BYTES_MAX: usize = 64 * 1024;
/// Request headers that are still read, so that their refusal can say what it is; beyond, the line is closed with a bare
/// status.
pub const HEADER_BYTES_READ_MAX: usize = 2 * HEADER_BYTES_MAX;
/// Connections of one door.
pub const CONNECTIONS_MAX: usize = 4_096;
/// Connections of one remote address that have not proven who they are.
pub const UNAUTHENTICATED_PER_ADDRESS_MAX: usize = 64;
/// Requests of one local connection under way at once; more get `daemon_busy`.
pub const IN_FLIGHT_PER_CONNECTION_MAX: usize = 64;
/// Event streams of one daemon; more get `too_many_streams`.
pub const EVENT_STREAMS_MAX: usize = 32;
/// Header read: a slow client may not hold a connection without saying what it wants.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Body read.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// A kept-alive connection without a request.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(75);
/// Answers in flight at a stop get this long; queued rows stay on disk.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// After a store has stopped, readiness says so for this long before the listeners close: two looks of a load balancer.
pub const STORE_STOPPED_NOTICE: Duration = Duration::from_secs(5);
/// A process whose store has stopped is ended after this long even where something hangs: less than the 30 s that a
/// supervisor is promised.
pub const STORE_STOPPED_EXIT_MAX: Duration = Duration::from_secs(25);
/// An audit stream is set aside at this size, and the one set aside before goes: some hundred thousand records.
pub const AUDIT_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Messages of one link `send` or `mail` frame.
pub const FRAME_MESSAGES_MAX: usize = 64;
/// Lanes one mesh may have on the wire at once.
pub const LANES_IN_FLIGHT_MAX: usize = 32;
/// Unacked rows of a link window: mail and receipts have one each.
pub const WINDOW_ROWS_MAX: usize = 256;
/// A full window without any ack for this long closes the link.
pub const WINDOW_STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Frames waiting to be written to one WebSocket; full means a stalled reader.
pub const SOCKET_FRAMES_MAX: usize = 256;
/// Jobs waiting for a store's writer; full answers 503 and consumes nothing.
pub const WRITER_QUEUE_MAX: usize = 1_024;
/// The answer to a link `send`; later the rows go back to pending and the link closes.
pub const SEND_ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
/// Negotiation after an upgrade.
pub const NEGOTIATION_TIMEOUT: Duration = Duration::from_secs(5);
/// A question over the link (`ask`).
pub const ASK_TIMEOUT: Duration = Duration::from_secs(2);
/// Ping in both directions on every link.
pub const PING_EVERY: Duration = Duration::from_secs(20);
/// A link without any frame for this long is dead.
pub const LINK_SILENCE_MAX: Duration = Duration::from_secs(75);
/// Dialling a door.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A client's wait for an answer that is no long poll.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// An answer a client reads: the largest page of the largest bodies.
pub const ANSWER_BYTES_MAX: usize = 128 * 1024 * 1024;
/// What a close frame says beside its code.
pub const CLOSE_REASON_BYTES_MAX: usize = 123;
/// A close: what waits goes first, then the other end's answer is awaited.
pub const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// The path of a Unix socket: addresses hold 107 bytes on Linux and 103 on macOS; the rest is room to bind under
/// another name first.
pub const SOCKET_PATH_BYTES_MAX: usize = 100;
/// Nesting of a request: deeper trees serve nobody and cost stack.
pub const REQUEST_DEPTH_MAX: usize = 64;
/// A ticket between exchange and upgrade.
pub const TICKET_TTL: Duration = Duration::from_secs(30);
/// Used tickets stay this long past their end, so that `ticket_already_used` can be told.
pub const TICKET_KEPT: Duration = Duration::from_secs(24 * 3600);
/// Tickets of one invite that are alive at once.
pub const TICKETS_PER_INVITE_MAX: u32 = 3;
/// A challenge between its request and the signed exchange.
pub const CHALLENGE_TTL: Duration = Duration::from_secs(60);
/// A nonce is remembered this long against replays.
pub const NONCE_KEPT: Duration = Duration::from_secs(5 * 60);
/// An invite.
pub const INVITE_TTL: Duration = Duration::from_secs(15 * 60);
/// Handshake requests of one address in [`EXCHANGE_RATE_WINDOW`].
pub const EXCHANGES_PER_WINDOW_MAX: u32 = 30;
/// See [`EXCHANGES_PER_WINDOW_MAX`].
pub const EXCHANGE_RATE_WINDOW: Duration = Duration::from_secs(60);
/// First delay of the retry curve.
pub const RETRY_DELAY_MIN: Duration = Duration::from_millis(500);
/// Last delay of the retry curve.
pub const RETRY_DELAY_MAX: Duration = Duration::from_secs(30);
/// No jitter may undercut this, or a dead broker is hammered.
pub const RETRY_DELAY_FLOOR: Duration = Duration::from_millis(50);
/// The longest `Retry-After` believed: a mistaken broker, or a clock set back, may not park a lane for days.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(5 * 60);
/// How long an unknown destination is tried: it may be created by a message still on its way.
pub const DESTINATION_GONE_AFTER: Duration = Duration::from_secs(3_600);
/// The same server fault this often …
pub const POISON_ATTEMPTS_MIN: u32 = 50;
/// … over this long buries a row.
pub const POISON_AGE_MIN: Duration = Duration::from_secs(24 * 3600);
/// The text of a row's last refusal; longer ones are cut.
pub const LAST_ERROR_BYTES_MAX: usize = 512;
/// An operator's hold on a row while the broker is asked about it; a lost one frees itself.
pub const OPERATOR_HOLD_MAX: Duration = Duration::from_secs(30);
/// Rows one clean-up or re-drive transaction touches, so that sends never wait for long.
pub const SWEEP_ROWS_MAX: usize = 500;
/// The outbox is bounded by bytes, not rows.
pub const OUTBOX_BYTES_MAX: u64 = 5 * 1024 * 1024 * 1024;
/// Free bytes the disk must keep; below it a send gets 507 and no id is consumed.
pub const DISK_RESERVE_BYTES: u64 = 64 * 1024 * 1024;
/// Dedupe windows shorter than this are refused in negotiation.
pub const DEDUPE_DAYS_MIN: u32 = 7;
/// Dedupe window of a new mesh.
pub const DEDUPE_DAYS_DEFAULT: u32 = 365;
/// Oldest age of an attempted row when the broker's dedupe is permanent.
pub const PERMANENT_MAX_AGE_HOURS: u32 = 168;
/// Inbox bodies are kept this long; the ids for ever.
pub const INBOX_RETENTION_DAYS: u32 = 30;
/// Outbox payloads are kept this long after `done` or `aborted`; the ids for ever.
pub const OUTBOX_PAYLOAD_KEPT_DAYS: u32 = 7;
/// Payload bytes one transaction of an operator's prune frees: it writes as many to the log, and the disk may be full.
pub const PRUNE_BYTES_MAX: u64 = 1024 * 1024;
/// Free bytes of a mailbox's file below which a start does not make it anew: they are written to again soon.
pub const SHRINK_FREE_BYTES_MIN: u64 = 16 * 1024 * 1024;
/// Bytes in use up to which a start makes a file anew: a start may take some seconds longer, not minutes.
pub const SHRINK_LIVE_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// Bytes that stay free on the disk beside the copy of a file that is made anew.
pub const SHRINK_ROOM_BYTES: u64 = 16 * 1024 * 1024;
/// Bodies up to this stand in their row of an outbox, longer ones beside it: some rows still share a page.
pub const SHORT_BODY_BYTES: usize = 512;
/// An undelivered row ends `expired` after this long.
pub const UNDELIVERED_DAYS_MAX: u32 = 90;
/// Rows of an outbox that one claim sorts by lane.
pub const SORT_ROWS_MAX: usize = 512;
/// Names of an outbox that wait to be filed; more are filed as they come.
pub const NAMES_UNFILED_MAX: usize = 65_536;
/// Rows a page of a list may have.
pub const PAGE_ROWS_MAX: usize = 1_000;
/// Rows a page of a list has when nobody says.
pub const PAGE_ROWS_DEFAULT: usize = 200;
/// Newest `done` rows a daemon names on connect, so that a restored ledger is noticed.
pub const RESTORE_WITNESSES_MAX: usize = 64;
/// Rows of one `message_status` question.
pub const STATUS_ROWS_MAX: usize = 256;
/// Longest wait of a long poll.
pub const LONG_POLL_MAX: Duration = Duration::from_secs(60);
/// A lost wake costs at most this.
pub const SAFETY_POLL_EVERY: Duration = Duration::from_secs(1);
/// Units a second a budget may earn: one unit is at least a microsecond, the limiter's grain.
pub const BUDGET_RATE_MAX: u32 = 1_000_000;
/// A burst must be earned in this time, or a spent budget looks like a ban.
pub const BUDGET_PERIOD_MAX: Duration = Duration::from_secs(24 * 3600);
/// The burst of a budget that names none, in seconds of its rate.
pub const BUDGET_BURST_SECONDS: u32 = 10;
/// Messages a second one member may have accepted, when nobody says.
pub const MEMBER_RATE_DEFAULT: u32 = 1_000;
/// Messages a second one mesh may have accepted, when nobody says.
pub const MESH_RATE_DEFAULT: u32 = 10_000;
/// Requests a member may make for each message it may have accepted: retries are free of budget, not of bound.
pub const REQUESTS_PER_MESSAGE: NonZeroU32 = NonZeroU32::new(10).expect("ten is not zero");
/// Marks the embedded limiter keeps; a mesh at the default rate has at most 300,000 alive. Full: the oldest goes.
pub const LIMITER_MARKS_MAX: usize = 512 * 1024;
/// Members with spent budget the embedded limiter keeps. Full: the one nearest to a whole budget goes.
pub const LIMITER_MEMBERS_MAX: usize = 64 * 1024;
/// The answer of a shared limiter; later the process's own budgets decide.
pub const LIMITER_ANSWER_TIMEOUT: Duration = Duration::from_millis(250);
/// A shared limiter that did not answer is asked again this often.
pub const LIMITER_RETRY_EVERY: Duration = Duration::from_secs(1);
/// A webhook's address.
pub const WEBHOOK_URL_BYTES_MAX: usize = 2_048;
/// Webhooks of one mesh: a look for due ones visits each.
pub const WEBHOOKS_MAX: usize = 1_000;
/// Topics one webhook is made with.
pub const WEBHOOK_TOPICS_MAX: usize = 64;
/// A whole call: resolving, connecting, asking, reading the answer.
pub const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(10);
/// What is read of an answer's body; the status says everything.
pub const WEBHOOK_ANSWER_BYTES_MAX: usize = 4 * 1024;
/// A claim on a conversation's next call: longer than any call, so that two brokers never make it at once.
pub const WEBHOOK_CLAIM_TTL: Duration = Duration::from_secs(60);
/// Due calls are looked for at most this often: a busy ledger wakes without pause.
pub const WEBHOOK_LOOK_EVERY: Duration = Duration::from_millis(20);
/// Calls of one broker under way.
pub const WEBHOOK_CALLS_MAX: usize = 64;
/// Calls to one webhook under way, of all brokers: one slow endpoint leaves room for the others.
pub const WEBHOOK_CALLS_PER_ENDPOINT_MAX: usize = 4;
/// Attempts at one row; the schedule spreads them over five to six days.
pub const WEBHOOK_ATTEMPTS_MAX: u32 = 12;
/// The longest `Retry-After` of an endpoint that is believed.
pub const WEBHOOK_RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3600);
/// How long the old secret of a rotated webhook signs beside the new one.
pub const WEBHOOK_ROTATION: Duration = Duration::from_secs(24 * 3600);
/// Between two rounds of the broker's janitor: what ends, ends this much late at most.
pub const JANITOR_EVERY: Duration = Duration::from_secs(60);
/// Between two walks over all ids: one whose window has passed is forgotten this much late at most.
pub const DEDUPE_WALK_EVERY: Duration = Duration::from_secs(3600);
/// Between two audits of the books; each reads all of them.
pub const ORPHAN_CHECK_EVERY: Duration = Duration::from_secs(24 * 3600);
/// Rows younger than this are not audited: their transaction may be under way.
pub const ORPHAN_AGE_MIN: Duration = Duration::from_secs(5 * 60);
/// Orphans one audit names; any at all is an alarm.
pub const ORPHANS_NAMED_MAX: usize = 1_000;
/// The shortest time messages may be kept: undelivered rows live as long.
pub const MESSAGE_RETENTION_DAYS_MIN: u32 = 90;
/// After a read that found nothing a link window waits this long before a wake makes it read again.
pub const QUIET_READ_PAUSE: Duration = Duration::from_millis(2);
/// Questions of a broker that wait for a node's answer.
pub const NODE_QUESTIONS_MAX: usize = 32;
/// A node's answer to a broker, inside the time the broker itself has to answer.
pub const NODE_ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// How long an agent's tool waits when nobody says, under the minute after which common clients give up.
pub const TOOL_WAIT_DEFAULT: Duration = Duration::from_secs(30);
/// The longest a tool waits: the answer must still reach a client that gives up after a minute.
pub const TOOL_WAIT_MAX: Duration = Duration::from_secs(50);
/// Messages a tool shows when nobody says: a page of words has to fit an agent's memory.
pub const TOOL_ROWS_DEFAULT: usize = 20;
/// Messages a tool shows at most.
pub const TOOL_ROWS_MAX: usize = 100;
/// Bytes of message text a tool shows at most; at least one message is always shown whole.
pub const TOOL_TEXT_BYTES_MAX: usize = 128 * 1024;
/// A line from an agent's client: a whole request, as JSON inside JSON.
pub const TOOL_LINE_BYTES_MAX: usize = 1024 * 1024;
/// A turn's lease when its holder asks for none: an agent that died is noticed within a minute.
pub const TURN_LEASE_DEFAULT: Duration = Duration::from_secs(60);
/// The shortest lease: below it a busy machine loses turns that go well.
pub const TURN_LEASE_MIN: Duration = Duration::from_secs(1);
/// The longest lease: a dead holder may not hold a message for a day.
pub const TURN_LEASE_MAX: Duration = Duration::from_secs(3_600);
/// Reruns of a message whose turn was interrupted: a message that ends its agent twice would do it again.
pub const TURN_RERUNS_MAX: u32 = 1;
/// Who holds a turn, in its own words.
pub const TURN_HOLDER_BYTES_MAX: usize = 64;
/// Why a turn failed, in its agent's words; longer ones are cut.
pub const TURN_ERROR_BYTES_MAX: usize = 2 * 1024;
/// How long the hub remembers what it answered under a key.
pub const HUB_KEY_DAYS: u32 = 14;
/// Older copies are refused: the record of an earlier one may be forgotten while they are under way.
pub const HUB_COPY_DAYS_MAX: u32 = HUB_KEY_DAYS - 1;
/// Tasks of one status sync; the bound of a body holds them as well.
pub const HUB_SYNC_TASKS_MAX: usize = 512;
/// Writes of one hub transaction on PostgreSQL: bounds the time the first of them waits for the last.
pub const HUB_BATCH_MAX: usize = 64;
/// Messages one read of a list over all logs looks at, whoever may read them.
pub const MESSAGES_SCANNED_MAX: i64 = 10_000;
/// Lines of a relay's route table.
pub const RELAY_ROUTES_MAX: usize = 1_000;
/// Places a refusal of a secret-bearing body names.
pub const SECRET_POINTERS_MAX: usize = 16;
/// A body the relay may store; larger ones still pass live.
pub const RELAY_BODY_BYTES_MAX: usize = 64 * 1024;
/// Envelopes that wait in a relay's outbox.
pub const RELAY_ROWS_MAX: u64 = 10_000;
/// Bytes of bodies that wait in a relay's outbox.
pub const RELAY_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// What is kept of an upstream's answer.
pub const RELAY_RESPONSE_BYTES_MAX: usize = 2 * 1024;
/// The upstream's state of a resource in conflict, kept beside ours.
pub const RELAY_THEIRS_BYTES_MAX: usize = 64 * 1024;
/// An upstream remembers the key of a committed write this long.
pub const IDEMPOTENCY_KEPT: Duration = Duration::from_secs(HUB_KEY_DAYS as u64 * 24 * 3600);
/// An envelope older than this is not replayed by itself: a day before its key may be forgotten.
pub const RELAY_AGE_MAX: Duration = Duration::from_secs(13 * 24 * 3600);
/// First alarm about an envelope's age.
pub const RELAY_AGE_OLD: Duration = Duration::from_secs(7 * 24 * 3600);
/// Last alarm about an envelope's age.
pub const RELAY_AGE_LAST: Duration = Duration::from_secs(12 * 24 * 3600);
/// First delay of a relay's retry curve.
pub const RELAY_RETRY_DELAY_MIN: Duration = Duration::from_secs(1);
/// Last delay of a relay's retry curve.
pub const RELAY_RETRY_DELAY_MAX: Duration = Duration::from_secs(5 * 60);
/// Done envelopes are kept this long.
pub const RELAY_DONE_KEPT: Duration = Duration::from_secs(24 * 3600);
/// A relay's claim on an envelope: longer than any attempt, so that two replayers never send one at once.
pub const RELAY_LEASE: Duration = Duration::from_secs(60);
/// The upstream's answer to a forwarded write; later its outcome is unknown.
pub const RELAY_ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
/// A new write waits this long for older ones of its resource.
pub const RELAY_ORDER_WAIT: Duration = Duration::from_secs(2);
/// Resources whose envelopes are replayed at once.
pub const RELAY_LANES_MAX: usize = 8;
/// What a relay that is told to stop waits for what is on the wire: less than the 5 s in which it promises to end.
pub const RELAY_STOP_TIMEOUT: Duration = Duration::from_secs(4);
/// Envelopes a second a relay replays, so that a returning upstream is not run over.
pub const RELAY_DRAIN_PER_SECOND: u32 = 20;
/// Connections that could not be made, and answers of a gateway in their place, before the relay stops dialling for each
/// request.
pub const BREAKER_FAILURES_MAX: u32 = 3;
/// An upstream that is away is looked at this often.
pub const BREAKER_PROBE_EVERY: Duration = Duration::from_secs(2);
/// An upstream that answers 503 is left alone for as long as its `Retry-After` says, within this: it may speak of one
/// address alone.
pub const BREAKER_RETRY_AFTER_MAX: Duration = Duration::from_secs(30);
/// The answer to a look at the upstream's health.
pub const RELAY_PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// Connections each strand keeps open to a door that requests are handed on to, between two requests.
pub const PASS_IDLE_CONNECTIONS_MAX: usize = 256;
/// The answer to a batch, which a relay reads before it passes it on: it names each of `HUB_SYNC_TASKS_MAX` records.
pub const RELAY_BATCH_ANSWER_BYTES_MAX: usize = 128 * 1024;
/// Entity tags a relay remembers; the oldest goes.
pub const RELAY_TAGS_MAX: usize = 10_000;
/// Writes that are too old to be sent again which the standing of a relay names.
pub const RELAY_TOO_OLD_NAMED_MAX: usize = 20;
/// An upstream's stamp of a change may stand this much ahead of the upstream's time as a relay knows it: the two clocks may
/// have moved apart since the relay asked.
pub const RELAY_STAMP_AHEAD_MAX: Duration = Duration::from_secs(60);
/// States of resources a relay remembers for the writes asked on them, of at most `RELAY_THEIRS_BYTES_MAX` each.
pub const RELAY_BASES_MAX: usize = 256;
/// A caller without a key that repeats a body within this time is told so.
pub const RELAY_TWIN_WINDOW: Duration = Duration::from_secs(60);
/// Bodies of the last minute a relay compares with; the oldest goes.
pub const RELAY_TWINS_MAX: usize = 10_000;
/// Keys a relay remembers having refused, for whoever asks what became of them.
pub const RELAY_REFUSED_MAX: usize = 1_000;
/// What a caller says of itself: agent, session, principal.
pub const RELAY_SOURCE_BYTES_MAX: usize = 128;
/// A store's clock this far behind what it said before has gone back; less is a step between machines.
pub const CLOCK_REGRESSED_MIN: Duration = Duration::from_secs(1);
/// Between two records that it has.
pub const CLOCK_REGRESSED_TOLD_EVERY: Duration = Duration::from_secs(60);
/// A wall clock that stands ahead of the time seen to pass is believed after it stood so for this much running time: a
/// wrong date is noticed and set right in less.
pub const CLOCK_DOUBT: Duration = Duration::from_secs(24 * 3600);
/// A wall clock may move this much apart from running time between two looks without being doubted.
pub const CLOCK_STEP_MAX: Duration = Duration::from_secs(60);
/// A wall clock that jumped ahead by more while its process ran is told of; less is a short sleep of the machine.
pub const CLOCK_AHEAD_MIN: Duration = Duration::from_secs(3600);
/// A wall clock that stands ahead by more is shown to operators for as long as it does; less is a machine that was off
/// over a weekend.
pub const CLOCK_AHEAD_SHOWN: Duration = Duration::from_secs(3 * 24 * 3600);
/// A sweep takes an earlier look at the clock for its own up to this age, so that each of its steps is no write more.
pub const CLOCK_LOOK_KEPT: Duration = Duration::from_secs(10);

/// How far a sender's instant of a first attempt, told in the broker's time, may stand behind the broker's own.
pub const FIRST_ATTEMPT_ERROR_MAX: Duration = Duration::from_secs(3600);
/// Conversations one connection follows.
pub const SUBSCRIPTIONS_MAX: usize = 64;
/// Rows one read of a subscription takes.
pub const CATCH_UP_ROWS: usize = 256;
/// Bytes of bodies one follower holds between a read and its socket; the rest of the page is read again.
pub const CATCH_UP_BYTES_MAX: usize = 768 * 1024;
/// Frames waiting for one subscriber; what does not fit is read again from the log.
pub const SUBSCRIBER_FRAMES_MAX: usize = 64;
/// Bytes of one hand-over to a subscriber: what it must take within the next bound.
pub const HANDED_BYTES_MAX: usize = 256 * 1024;
/// A subscriber that takes nothing for this long is closed with 4408; it resumes from its cursor.
pub const SUBSCRIBER_STALL_MAX: Duration = Duration::from_secs(30);
/// Rows of a log kept for those who follow it live; whoever is further behind reads the log.
pub const TAIL_ROWS_MAX: usize = 1_024;
/// Bytes of the same.
pub const TAIL_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Followers that are served before the answer to whoever wrote; more are a crowd, which the answer need not wait for.
pub const FOLLOWERS_FEW: usize = 16;
/// For each follower of a crowd, between two hand-overs: some times what one takes of a processor, so that most of it
/// is left to those who write. A message after a quiet while goes out at once.
pub const HAND_OVER_PAUSE_EACH: Duration = Duration::from_micros(60);
/// The longest such pause.
pub const HAND_OVER_PAUSE_MAX: Duration = Duration::from_millis(20);
/// Tokens a broker on a file remembers having looked up.
pub const TOKENS_REMEMBERED_MAX: usize = 4_096;
/// Between two looks at the heads of followed logs: commits elsewhere cost a follower at most this.
pub const HEADS_LOOK_EVERY: Duration = Duration::from_millis(5);
/// Between two checks that a subscriber's credential still holds.
pub const CREDENTIAL_CHECK_EVERY: Duration = Duration::from_secs(30);
/// Characters of a question shown in an escalation; the whole stands in the log.
pub const QUESTION_CHARS_MAX: usize = 280;
/// Escalations a snapshot names: with their questions they fit a frame, whatever characters those have.
pub const ESCALATIONS_MAX: usize = 256;
/// Edges of escalations a connection may lag behind before it gets a new snapshot.
pub const ESCALATION_EDGES_MAX: usize = 1_024;
/// How far back a look for edges reaches: longer than any accept transaction takes.
pub const ESCALATION_OVERLAP: Duration = Duration::from_secs(60);
/// Events of escalations are kept this long; their only readers are brokers that run.
pub const ESCALATION_KEPT: Duration = Duration::from_secs(24 * 3600);
/// Others' messages are counted as unread up to this.
pub const UNREAD_MAX: usize = 100;
/// A sign-in link.
pub const SIGN_IN_TTL: Duration = Duration::from_secs(15 * 60);
/// A browser's session.
pub const SESSION_TTL: Duration = Duration::from_secs(30 * 24 * 3600);
/// Event streams over HTTP of one broker.
pub const CHAT_STREAMS_MAX: usize = 1_024;
