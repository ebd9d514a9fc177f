/** One conversation: its log, what waits in it, and where to write. */

import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { Row } from "../client";
import { clockBehindMs, me } from "../state/broker";
import { describe } from "../state/members";
import { minute, watch } from "../state/pulse";
import { lookAtReceipts } from "../state/receipts";
import { link, route } from "../state/route";
import { talks, waiting } from "../state/talks";
import { below, follow, shown, thread } from "../state/thread";
import { clock, day, instant, sameDay } from "../text/time";
import { firstLine } from "../text/visible";
import { conversationName, count } from "../text/words";
import { Compose } from "./compose";
import { icons } from "./icons";
import { DraftRow, MessageRow } from "./message";
import { Reading } from "./parts";

/** Nearer than this to the end counts as looking at the newest row. */
const END_PX = 48;
/** Nearer than this to the start asks for older rows. */
const START_PX = 240;

export function Thread({ id }: { id: string }) {
  const row = talks.value?.find((one) => one.conversation === id);
  const name = row ? conversationName(row.conversation_name) : "Conversation";
  const about = row?.kind === "dm" ? describe(name) : "";
  useEffect(() => watch(5_000, lookAtReceipts), [id]);
  return (
    <section class="pane thread" aria-label={name}>
      <div class="head">
        <a class="back" href={link("conversations")} aria-label="Back">
          {icons.back}
        </a>
        <h2 class="ell">{name}</h2>
        <span class="dim ell">{about}</span>
        {row && row.state !== "active" ? <span class="tag">{row.state}</span> : null}
        <div class="r">{row ? <span class="hide-p">{count(row.head, "message")}, in order</span> : null}</div>
      </div>
      <Log />
      <Waits id={id} />
      <Compose id={id} name={name} closed={row?.state === "closed"} />
    </section>
  );
}

function Log() {
  const box = useRef<HTMLDivElement>(null);
  const anchor = useRef<{ key: string; top: number } | undefined>(undefined);
  const view = shown.value;
  const open = thread.value;

  // The reader's place: the end while following, else the row that was on top.
  useLayoutEffect(() => {
    const log = box.current;
    if (!log || !open) return;
    if (open.follows) log.scrollTop = log.scrollHeight;
    else if (anchor.current) {
      const row = log.querySelector<HTMLElement>(`[data-key="${CSS.escape(anchor.current.key)}"]`);
      if (row) log.scrollTop += row.getBoundingClientRect().top - anchor.current.top;
    }
  }, [view]);

  if (!view || (view.phase.kind === "reading" && view.log.rows.length === 0)) {
    return (
      <div class="scroll">
        <Reading what="the log" />
      </div>
    );
  }
  const scrolled = () => {
    const log = box.current;
    if (!log || !open) return;
    const follows = log.scrollHeight - log.scrollTop - log.clientHeight < END_PX;
    if (follows !== open.follows) follow(follows);
    // At the end nobody asks which row is on top, and finding out reads the place of every row.
    anchor.current = follows ? undefined : topRow(log);
    if (log.scrollTop < START_PX && !follows) void open.older();
  };
  const toEnd = () => {
    if (view.phase.kind === "detached") void open?.open();
    follow(true);
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  };
  return (
    <>
      <div class="scroll" id="log" ref={box} onScroll={scrolled} tabIndex={0} aria-label="Messages">
        <div class="msgs" role="log" aria-relevant="additions" aria-busy={view.phase.kind === "reading"}>
          {view.log.has_more ? <p class="dim start">Older rows are read as you scroll up.</p> : null}
          {view.phase.kind === "refused" ? <p role="alert">{view.phase.message}</p> : null}
          {view.log.rows.map((row, place) => (
            <LogRow key={rowKey(row)} row={row} previous={view.log.rows[place - 1]} />
          ))}
          {view.log.drafts.map((draft) => (
            <DraftRow key={`${me.value} ${draft.client_message_id}`} draft={draft} />
          ))}
        </div>
      </div>
      {below.value > 0 || view.phase.kind === "detached" ? (
        <button type="button" class="btn newer" onClick={toEnd}>
          {view.phase.kind === "detached" ? "To the newest rows" : count(below.value, "new row")}
        </button>
      ) : null}
    </>
  );
}

/** An own row keeps the key its draft had, so that it is the same entry on the screen. */
function rowKey(row: Row): string {
  if (row.kind === "gap") return row.key;
  const { sender, client_message_id, id } = row.message;
  return sender === me.value ? `${sender} ${client_message_id}` : id;
}

function LogRow({ row, previous }: { row: Row; previous: Row | undefined }) {
  if (row.kind === "gap") {
    const now = minute.value;
    const until = clock(row.until, now, "seconds");
    return (
      <div class="gap" data-key={row.key}>
        {icons.resume}
        Broker away {clock(row.from, now, "seconds")} to {until}. {caughtUp(row.rows)}
      </div>
    );
  }
  const at = instant(row.message.created_at);
  const before = previous?.kind === "message" ? instant(previous.message.created_at) : undefined;
  const isFirst = previous === undefined || (before !== undefined && !sameDay(at, before));
  return (
    <>
      {isFirst ? <div class="day">{day(at)}</div> : null}
      <MessageRow message={row.message} selected={route.value.within === row.message.id} />
    </>
  );
}

function caughtUp(rows: number): string {
  if (rows === 0) return "Nothing was missed.";
  return `${count(rows, "row")} caught up; none missed, none repeated.`;
}

/** The row at the top of the screen, and where. */
function topRow(log: HTMLElement): { key: string; top: number } | undefined {
  const edge = log.getBoundingClientRect().top;
  for (const row of log.querySelectorAll<HTMLElement>("[data-key]")) {
    const { bottom, top } = row.getBoundingClientRect();
    if (bottom > edge) return { key: row.dataset["key"] ?? "", top };
  }
  return undefined;
}

/** Somebody waits for an answer here. The dot goes when the broker says so, not when it was looked at. */
function Waits({ id }: { id: string }) {
  const asks = waiting.value.get(id);
  if (!asks) return null;
  const since = clock(instant(asks.created_at) - clockBehindMs.value, minute.value, "minutes");
  return (
    <div class="waits">
      <span class="dot" />
      <div>
        <b>{asks.sender} waits for your answer</b> <span class="dim">since {since}: </span>
        <bdi>{firstLine(asks.question)}</bdi>
      </div>
    </div>
  );
}
