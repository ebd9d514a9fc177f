/** A row of a thread: a message of the log, or an own one that is not there yet. */

import { useMemo, useState } from "preact/hooks";
import type { Draft, Message } from "../client";
import { awaySince, me } from "../state/broker";
import { describe } from "../state/members";
import { inboxes, receipts } from "../state/receipts";
import { link } from "../state/route";
import { replyTo } from "./compose";
import { shown, thread } from "../state/thread";
import { html } from "../text/markdown";
import { firstLine } from "../text/visible";
import { count } from "../text/words";
import { icons } from "./icons";
import { Ladder, StandingLadder } from "./ladder";
import { ClockTime, copy } from "./parts";

export function MessageRow({ message, selected }: { message: Message; selected: boolean }) {
  const mine = message.sender === me.value;
  const open = link("conversations", message.conversation, message.id);
  return (
    <article class="msg" data-key={message.id} data-id={message.id} data-mine={mine} aria-current={selected ? "true" : undefined} tabIndex={0}>
      <Monogram name={message.sender} mine={mine} />
      <div class="in">
        <div class="who">
          <b>{message.sender}</b>
          <span class="hide-p ell">{mine ? "you" : describe(message.sender)}</span>
          <span class="acts">
            <button type="button" class="cp" aria-label={`Reply to ${message.sender}`} title="Reply" onClick={() => replyTo(message)}>
              {icons.reply}
            </button>
            <button type="button" class="cp" aria-label="Copy the text" title="Copy the text" onClick={() => copy(message.body)}>
              {icons.copy}
            </button>
          </span>
          <a class="at-time" href={open}>
            <span class="vh">Receipt, </span>
            <ClockTime at={message.created_at} form="minutes" />
          </a>
        </div>
        <Body body={message.body} mentions={message.mentions ?? []} />
        <Foot message={message} mine={mine} />
      </div>
    </article>
  );
}

/** An own message the log does not hold yet, with what is true of it. */
export function DraftRow({ draft }: { draft: Draft }) {
  return (
    <article class="msg draft" data-key={draft.client_message_id} data-draft={draft.state.kind} data-mine="true">
      <Monogram name={me.value} mine />
      <div class="in">
        <div class="who">
          <b>{me.value}</b>
          <span class="hide-p">you</span>
        </div>
        <Body body={draft.body} mentions={draft.mentions} />
        <div class="ft" aria-live="off">
          <DraftState draft={draft} />
        </div>
      </div>
    </article>
  );
}

function DraftState({ draft }: { draft: Draft }) {
  const { state, client_message_id } = draft;
  switch (state.kind) {
    case "sending": {
      const note = awaySince.value !== undefined ? "kept in this tab; asked again under the same id" : state.attempts > 1 ? "no answer yet, asked again under the same id" : undefined;
      return <Ladder rung="none" note={note} />;
    }
    case "accepted":
      return <Ladder rung="accepted" />;
    case "refused":
      return (
        <>
          <Ladder rung="none" note={`${state.message} (${state.code})`} />
          <button type="button" class="btn low" onClick={() => thread.value?.resend(client_message_id)}>
            Ask again
          </button>
          <button type="button" class="btn low" onClick={() => thread.value?.discard(client_message_id)}>
            Take away
          </button>
        </>
      );
  }
}

function Foot({ message, mine }: { message: Message; mine: boolean }) {
  const record = mine ? receipts.value.get(message.id) : undefined;
  const answers = message.reply_to ? <ReplyOf id={message.reply_to} conversation={message.conversation} /> : null;
  if (!record && !answers && !message.redelivered && !message.expects_input) return mine ? <div class="ft" aria-live="off"><Ladder rung="accepted" /></div> : null;
  // A receipt climbs silently: what a reader hears are new rows.
  return (
    <div class="ft" aria-live="off">
      {answers}
      {message.expects_input ? <span class="tag">asks for an answer</span> : null}
      {record ? <StandingLadder word={record.standing ?? "accepted"} {...inboxes(record)} /> : mine ? <Ladder rung="accepted" /> : null}
    </div>
  );
}

function ReplyOf({ id, conversation }: { id: string; conversation: string }) {
  const rows = shown.value?.log.rows ?? [];
  const answered = rows.find((row) => row.kind === "message" && (row.message.id === id || row.message.client_message_id === id));
  if (answered?.kind !== "message") return <span class="dim">reply</span>;
  const { message } = answered;
  return (
    <a class="dim ell re" href={link("conversations", conversation, message.id)}>
      reply to {message.sender} <bdi>“{firstLine(message.body, 60)}”</bdi>
    </a>
  );
}

/** Longer bodies are folded, so that one log file does not bury a conversation. */
const LINES_MAX = 40;
const SIGNS_MAX = 4_000;

export function Body({ body, mentions }: { body: string; mentions: readonly string[] }) {
  const safe = useMemo(() => html(body, mentions), [body, mentions]);
  const lines = useMemo(() => body.split("\n").length, [body]);
  const [whole, setWhole] = useState(false);
  const folded = !whole && (lines > LINES_MAX || body.length > SIGNS_MAX);
  return (
    <>
      <div class={folded ? "bd folded" : "bd"} dir="auto" dangerouslySetInnerHTML={{ __html: safe }} />
      {folded ? (
        <button type="button" class="btn low" onClick={() => setWhole(true)}>
          Show all, {lines > 1 ? count(lines, "line") : count(body.length, "sign")}
        </button>
      ) : null}
    </>
  );
}

function Monogram({ name, mine }: { name: string; mine: boolean }) {
  return (
    <span class={`mg ${mine ? "h" : ""}`} aria-hidden="true">
      {name.slice(0, mine ? 1 : 2)}
    </span>
  );
}
