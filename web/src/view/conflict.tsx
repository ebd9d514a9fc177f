/** One conflict: the version it was asked on, what was asked for, what is there now, and the person's word on it. */

import { useEffect, useState } from "preact/hooks";
import { Away } from "../client";
import { type Choice, type Envelope, type Field, asker, base, behind, compare, parseEdited, title, told, version } from "../state/conflicts";
import { minute } from "../state/pulse";
import { relay } from "../state/relay";
import { link } from "../state/route";
import { say } from "../state/say";
import { clock, instant } from "../text/time";
import { visible } from "../text/visible";
import { SENTENCE, isEnding, short } from "../text/words";
import { clashing, settled } from "./conflicts";
import { icons } from "./icons";
import { Ladder } from "./ladder";
import { Cmd, Facts, Reading, Refused, copy, sentence } from "./parts";

type Act = { kind: "none" } | { kind: "editing" } | { kind: "busy" } | { kind: "refused"; error: unknown };

export function Conflict({ id }: { id: string }) {
  const [row, setRow] = useState<Envelope | undefined>(undefined);
  const [error, setError] = useState<unknown>(undefined);
  /** What the act of this reader answered; the row is read again after it. */
  const [answer, setAnswer] = useState<string | undefined>(undefined);
  const look = () => relay.inspect(id).then(setRow, setError);
  const acted = (said: string) => {
    setAnswer(said);
    say(said);
    return look();
  };
  useEffect(() => void look(), [id]);
  return (
    <section class="pane thread" aria-label={row ? title(row) : "Conflict"}>
      <div class="head">
        <a class="back" href={link("conflicts")} aria-label="Back">
          {icons.back}
        </a>
        <h2 class="ell">{row ? visible(title(row)) : short(id)}</h2>
        {row?.response_code ? <span class="tag hide-p">{visible(row.response_code)}</span> : null}
        <div class="r">
          <span class="mono hide-p">{short(id)}</span>
        </div>
      </div>
      <div class="scroll" tabIndex={0} aria-label="Both sides">
        {row ? <Sides row={row} answer={answer} again={look} acted={acted} /> : error ? <Refused error={error} still="Nothing was changed." /> : <Reading what="both sides" />}
      </div>
    </section>
  );
}

interface SidesProps {
  row: Envelope;
  answer: string | undefined;
  again(): void;
  acted(said: string): Promise<void>;
}

function Sides({ row, answer, again, acted }: SidesProps) {
  const open = row.status === "conflict";
  return (
    <>
      <div class="sec plain">
        <RowLadder row={row} />
        <p class="lead">{lead(row)}</p>
        <p class="mid">{story(row)}</p>
      </div>
      <Compared row={row} />
      {open ? <Decide row={row} again={again} acted={acted} /> : <Decided row={row} answer={answer} />}
      {open ? <Behind row={row} /> : null}
      <div class="sec">
        <Facts
          of={[
            ["write", `${row.method} ${visible(row.path)}`],
            ["key", short(row.idempotency_key), row.idempotency_key],
            ["envelope", short(row.envelope_id), row.envelope_id],
            ["tries", String(row.attempts)],
          ]}
        />
      </div>
    </>
  );
}

function RowLadder({ row }: { row: Envelope }) {
  const note = row.status === "conflict" ? "nothing was overwritten" : undefined;
  if (row.status === "done") return <Ladder rung="accepted" />;
  // What took its place is said in words; on the ladder a person withdrew it.
  if (row.status === "superseded") return <Ladder rung="queued" ending="cancelled" note={settled(row)} />;
  return isEnding(row.status) ? <Ladder rung="queued" ending={row.status} note={note} /> : <Ladder rung="queued" />;
}

function lead(row: Envelope): string {
  if (row.status !== "conflict") return row.resolution === null ? `${visible(title(row))}: ${visible(asker(row))}'s write is ${row.status}.` : `Settled: ${row.resolution}.`;
  const who = visible(asker(row));
  if (row.response_code === "idempotency_key_reused") return `The key of ${who}'s write carries another request there.`;
  if (row.response_code !== "state_conflict") return `The other side says that ${who}'s write clashes with what is there.`;
  const names = clashing(row);
  const what = names.length === 0 || names.length > 3 ? "" : ` to ${visible(names.join(", "))}`;
  return `${visible(title(row))} has changed since the version that ${who}'s write${what} was asked on.`;
}

function story(row: Envelope): string {
  const at = (text: string) => clock(instant(text), minute.value, "minutes");
  const asked = `${visible(asker(row))} asked at ${at(row.queued_at)} on ${base(row.precondition)}.`;
  const refused = row.ended_at === null ? "" : ` The other side ${row.response_code ? `answered ${visible(row.response_code)}` : "refused"}; the write ended at ${at(row.ended_at)}.`;
  return `${asked}${refused}`;
}

function Compared({ row }: { row: Envelope }) {
  const fields = compare(row);
  const open = row.status === "conflict";
  const when = open ? "There now" : "There then";
  const there = row.theirs_etag === undefined ? when : `${when}, ${version(row.theirs_etag)}`;
  return (
    <>
      <table class="cmp">
        <thead>
          <tr>
            <th>Field</th>
            <th>When asked, {base(row.precondition)}</th>
            <th>{visible(asker(row))} asked for</th>
            <th>{there}</th>
          </tr>
        </thead>
        <tbody>
          {fields.map((field) => (
            <Line key={field.name} field={field} kept={row.base !== undefined} known={row.theirs !== undefined} labels={[`asked on ${base(row.precondition)}`, "asked for", open ? "there now" : "there then"]} />
          ))}
        </tbody>
      </table>
      <p class="foot dim">
        {row.base === undefined ? visible(`What stood there then is not kept. ${row.base_unknown ?? ""}`) : "What stood there then is what passed the relay."}
        {row.mine === undefined ? " What was asked for is kept no longer." : ""}
        {row.theirs === undefined ? " What is there could not be read or must not be kept." : ""}
      </p>
    </>
  );
}

function Line({ field, kept, known, labels }: { field: Field; kept: boolean; known: boolean; labels: [string, string, string] }) {
  const hit = field.clashes ? "hit" : "";
  return (
    <tr>
      <td class="name">{visible(field.name)}</td>
      <td class="same" data-label={labels[0]}>
        <bdi>{field.base === undefined ? (kept ? "none" : "not kept") : visible(field.base)}</bdi>
      </td>
      <td class={`${hit} ${field.mine.kind === "value" ? "" : "same"}`} data-label={labels[1]}>
        <bdi>{mine(field)}</bdi>
      </td>
      <td class={hit} data-label={labels[2]}>
        <bdi>{field.theirs === undefined ? (known ? "none" : "unknown") : visible(field.theirs)}</bdi>
      </td>
    </tr>
  );
}

function mine(field: Field): string {
  switch (field.mine.kind) {
    case "untouched":
      return "not touched";
    case "removed":
      return "taken away";
    case "value":
      return visible(field.mine.text);
  }
}

/** Two sides and no default; what was done replaces the buttons, in place. */
function Decide({ row, again, acted }: Omit<SidesProps, "answer">) {
  const [act, setAct] = useState<Act>({ kind: "none" });
  const run = async (choice: Choice) => {
    setAct({ kind: "busy" });
    try {
      await acted(told(await relay.resolve(row, choice)));
    } catch (error) {
      setAct({ kind: "refused", error });
      say(`Refused: ${sentence(error)}`);
    }
    await relay.lookAtRows().catch(() => undefined);
  };
  const busy = act.kind === "busy";
  const on = row.theirs_etag === undefined ? "" : ` on ${version(row.theirs_etag)}`;
  return (
    <div class="sec fix">
      {act.kind === "refused" ? <NotDone error={act.error} again={again} /> : null}
      {act.kind === "editing" ? (
        <Edit row={row} send={(body) => void run({ choice: "edit", body })} leave={() => setAct({ kind: "none" })} />
      ) : (
        <div class="acts">
          <button type="button" class="btn" data-key="1" disabled={busy} onClick={() => void run({ choice: "drop" })}>
            Keep what is there <kbd>1</kbd>
          </button>
          <button type="button" class="btn" data-key="2" disabled={busy} onClick={() => void run({ choice: "keep" })}>
            Send {visible(asker(row))}'s{on} <kbd>2</kbd>
          </button>
          <button type="button" class="btn" data-key="3" disabled={busy || row.mine === undefined} onClick={() => setAct({ kind: "editing" })}>
            Edit, then send… <kbd>3</kbd>
          </button>
          <button type="button" class="btn" onClick={() => copy(JSON.stringify({ mine: row.mine, theirs: row.theirs }, null, 2))}>
            Copy both as JSON
          </button>
        </div>
      )}
      <p class="dim">
        <b>Keep</b> withdraws this write. <b>Send</b> makes a new write with a new key{on}; if the other side moved again you come back here. Either is recorded.
      </p>
    </div>
  );
}

function NotDone({ error, again }: { error: unknown; again: () => void }) {
  const away = error instanceof Away;
  return (
    <div role="alert">
      <p>
        <b>{away ? "No answer." : "Refused."}</b> {sentence(error)} {away ? "Whether it was recorded is unknown; looking again tells." : "The conflict is as it was."}
      </p>
      <button type="button" class="btn" onClick={again}>
        Look again
      </button>
    </div>
  );
}

function Edit({ row, send, leave }: { row: Envelope; send: (body: unknown) => void; leave: () => void }) {
  const [typed, setTyped] = useState(JSON.stringify(row.mine, null, 2));
  const [wrong, setWrong] = useState<string | undefined>(undefined);
  const submit = () => {
    const edited = parseEdited(typed);
    if (edited.kind === "wrong") setWrong(`${edited.why} Nothing was asked.`);
    else send(edited.body);
  };
  return (
    <div class="edit">
      <textarea aria-label="Body to send" rows={8} spellcheck={false} value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
      {wrong === undefined ? null : <p role="alert">{wrong}</p>}
      <div class="acts">
        <button type="button" class="btn main" onClick={submit}>
          Send these words
        </button>
        <button type="button" class="btn" onClick={leave}>
          Leave it
        </button>
      </div>
    </div>
  );
}

function Decided({ row, answer }: { row: Envelope; answer: string | undefined }) {
  return (
    <div class="sec">
      <p role="status">{answer === undefined ? <span class="mid">{meaning(row.status)}</span> : <b>{answer}</b>}</p>
      {row.superseded_by === null ? null : <Successor id={row.superseded_by} />}
    </div>
  );
}

function meaning(status: Envelope["status"]): string {
  switch (status) {
    case "queued":
    case "inflight":
      return SENTENCE.queued;
    case "done":
      return "The other side has it.";
    case "superseded":
      return "A new write took its place, under a new key.";
    case "conflict":
    case "rejected":
    case "expired":
    case "cancelled":
      return SENTENCE[status];
  }
}

/** What became of the write that took its place, as it is now. */
function Successor({ id }: { id: string }) {
  const [row, setRow] = useState<Envelope | undefined>(undefined);
  const seen = relay.rows.value?.at;
  useEffect(() => void relay.inspect(id).then(setRow, () => undefined), [id, seen]);
  return (
    <p class="line">
      {row ? <RowLadder row={row} /> : <span class="dim">Reading…</span>}
      <a href={link("conflicts", id)}>{short(id)}</a>
    </p>
  );
}

function Behind({ row }: { row: Envelope }) {
  const waiting = behind(row, relay.rows.value?.waiting ?? []);
  return (
    <div class="sec">
      <h3>Waits behind this decision</h3>
      {waiting.map((other) => (
        <p key={other.envelope_id} class="waiting">
          <Ladder rung="queued" small /> <span class="mono mid">{short(other.envelope_id)}</span> {other.method} {visible(other.path)}{" "}
          <span class="dim">asked {clock(instant(other.queued_at), minute.value, "minutes")}</span>
        </p>
      ))}
      <p class="dim">{waiting.length === 0 ? "Nothing." : ""} Other resources and everything that only adds went on without it.</p>
      <Cmd line={`postrider relay outbox resolve ${short(row.envelope_id)} --drop`} />
      <Cmd line={`postrider relay outbox resolve ${short(row.envelope_id)} --keep`} />
    </div>
  );
}
