/** One row: why it stands where it stands, whether the broker has it, and what fixes it. */

import { useEffect, useState } from "preact/hooks";
import { type BrokerExplained, Refusal, address } from "../client";
import { api } from "../state/broker";
import { type OutboxInspection, type OutboxItem, local, lookAtOutbox } from "../state/local";
import { link } from "../state/route";
import { say } from "../state/say";
import { SENTENCE, isEnding, short } from "../text/words";
import { visible } from "../text/visible";
import { RowLadder, words } from "./outbox";
import { ClockTime, Cmd, Facts, Head, Reading, Refused, sentence } from "./parts";

/** Whether the broker has the message; asked when the row opens, not after the click. */
type Asked = { kind: "asking" } | { kind: "yes"; place: string } | { kind: "no"; why: string } | { kind: "unknown"; why: string };

type Act = { kind: "none" } | { kind: "editing" } | { kind: "sure" } | { kind: "busy" } | { kind: "done"; answer: string; row?: string } | { kind: "refused"; error: unknown };

export function OutboxRow({ id, close }: { id: string; close: string }) {
  const [row, setRow] = useState<OutboxInspection | undefined>(undefined);
  const [error, setError] = useState<unknown>(undefined);
  useEffect(() => {
    let gone = false;
    setRow(undefined);
    setError(undefined);
    local.inspect(id).then(
      (found) => gone || setRow(found),
      (refused: unknown) => gone || setError(refused),
    );
    return () => {
      gone = true;
    };
  }, [id]);
  return (
    <aside class="pane detail" aria-label={`Row ${short(id)}`}>
      <Head title={short(id)} close={close} />
      <div class="scroll" tabIndex={0} aria-label={`Row ${short(id)}, facts`}>
        {row ? <Facets key={row.id} row={row} /> : error ? <Refused error={error} still="The row is as it was." /> : <Reading what="the row" />}
      </div>
    </aside>
  );
}

function Facets({ row }: { row: OutboxInspection }) {
  const [act, setAct] = useState<Act>({ kind: "none" });
  const asked = useBroker(row);
  const body = row.message ? visible(row.message.body) : undefined;
  const word = row.receipt.rung;
  return (
    <>
      <div class="sec">
        <RowLadder row={row} />
        <p class="lead">{why(row)}</p>
        <p class="mid">{isEnding(word) ? SENTENCE[word] : SENTENCE.queued}</p>
        {row.last_error ? <p class="mid">Last answer: {row.last_error}</p> : null}
      </div>
      <div class="sec">
        <h3>Does the broker have it?</h3>
        <Answer asked={asked} />
      </div>
      {row.status === "dead" || row.status === "pending" ? <Fix row={row} act={act} asked={asked} setAct={setAct} body={row.message?.body} /> : null}
      {row.chain.length > 1 ? <Chain row={row} /> : null}
      <div class="sec">
        <h3>{body === undefined ? "Body" : `Body, ${new TextEncoder().encode(row.message?.body).length.toLocaleString("en")} bytes`}</h3>
        <pre class="body" dir="auto">
          {body ?? "Kept no longer."}
        </pre>
      </div>
      <div class="sec">
        <Facts
          of={[
            ["id", row.client_message_id, row.client_message_id],
            ["fingerprint", row.request_fingerprint.slice(0, 16), row.request_fingerprint],
            ["asked", <ClockTime key="asked" at={row.enqueued_at} form="milliseconds" />],
            ["tries", String(row.attempts)],
            ["deliver by", row.deliver_by ? <ClockTime key="by" at={row.deliver_by} form="seconds" /> : "any time"],
          ]}
        />
        <Cmd line={`postrider daemon outbox requeue --id ${short(row.id)}`} />
        <p class="more">
          <a href={link("explain", row.client_message_id)}>Everything we know, in order</a>
        </p>
      </div>
    </>
  );
}

function useBroker(row: OutboxInspection): Asked {
  const [asked, setAsked] = useState<Asked>({ kind: "asking" });
  useEffect(() => {
    let gone = false;
    const show = (answer: Asked) => gone || setAsked(answer);
    api.get<BrokerExplained>(address.explain(row.client_message_id)).then(
      (explained) => show(verdict(explained, row)),
      (error: unknown) => show({ kind: "unknown", why: sentence(error) }),
    );
    return () => {
      gone = true;
    };
  }, [row.id]);
  return asked;
}

function verdict(explained: BrokerExplained, row: OutboxItem): Asked {
  const record = explained.records.find((one) => one.sender.name === row.sender);
  if (!record) return { kind: "no", why: "It never committed this id." };
  switch (record.state) {
    case "accepted":
      return { kind: "yes", place: `place ${record.history_id ?? "unknown"} in ${record.conversation_name ?? "its log"}` };
    case "retired":
      return { kind: "no", why: "Its id was retired there and can never be accepted any more." };
    default:
      return { kind: "unknown", why: "The broker no longer remembers ids that old." };
  }
}

function Answer({ asked }: { asked: Asked }) {
  switch (asked.kind) {
    case "asking":
      return <p class="dim">Asking…</p>;
    case "yes":
      return (
        <p>
          <b>Yes, {asked.place}.</b> <span class="mid">Only the answer was lost; requeueing is refused.</span>
        </p>
      );
    case "no":
      return (
        <p>
          <b>No.</b> <span class="mid">{asked.why} Requeueing cannot double it.</span>
        </p>
      );
    case "unknown":
      return (
        <p>
          <b>Unknown.</b> <span class="mid">{asked.why}</span>
        </p>
      );
  }
}

interface FixProps {
  row: OutboxInspection;
  act: Act;
  asked: Asked;
  body: string | undefined;
  setAct(act: Act): void;
}

/** What was done replaces the buttons, in place. */
function Fix({ row, act, asked, body, setAct }: FixProps) {
  const run = async (what: () => Promise<Extract<Act, { kind: "done" }>>) => {
    setAct({ kind: "busy" });
    try {
      const done = await what();
      setAct(done);
      say(done.answer);
    } catch (error) {
      setAct({ kind: "refused", error });
      say(`Refused: ${sentence(error)}`);
    }
    await lookAtOutbox().catch(() => undefined);
  };
  const requeue = (more: { patch_body?: string; force_duplicate?: boolean }) =>
    void run(async () => {
      const answer = await local.requeue({ id: row.id, ...more });
      return { kind: "done", answer: `Requeued under a new id; ${short(row.id)} is aborted and points to it.`, row: answer.new_row_id };
    });
  const abort = () =>
    void run(async () => {
      const { outcome } = await local.abort(row.id);
      return { kind: "done", answer: `Aborted; the broker's side: ${words(outcome)}.` };
    });
  return (
    <div class="sec fix">
      <h3>Fix</h3>
      {act.kind === "done" ? <Done act={act} /> : null}
      {act.kind === "refused" ? <RefusedAct error={act.error} force={() => requeue({ force_duplicate: true })} /> : null}
      {act.kind === "editing" ? <Edit body={body ?? ""} send={(text) => requeue({ patch_body: text })} cancel={() => setAct({ kind: "none" })} /> : null}
      {act.kind === "done" || act.kind === "editing" ? null : (
        <>
          <button type="button" class="btn main" data-key-r disabled={act.kind === "busy" || asked.kind === "yes"} onClick={() => requeue({})}>
            Requeue with a new id <kbd>r</kbd>
          </button>
          <p class="dim">{short(row.id)} becomes aborted and points to the new row. Its id stays used for ever.</p>
          <div class="acts">
            <button type="button" class="btn" disabled={act.kind === "busy" || body === undefined} onClick={() => setAct({ kind: "editing" })}>
              Edit body first…
            </button>
            {act.kind === "sure" ? (
              <button type="button" class="btn" onClick={abort}>
                Really abort, for ever
              </button>
            ) : (
              <button type="button" class="btn" disabled={act.kind === "busy"} onClick={() => setAct({ kind: "sure" })}>
                Abort…
              </button>
            )}
          </div>
        </>
      )}
    </div>
  );
}

function Done({ act }: { act: Extract<Act, { kind: "done" }> }) {
  return (
    <p role="status">
      <b>{act.answer}</b> {act.row === undefined ? null : <a href={link("outbox", act.row)}>{short(act.row)}</a>}
    </p>
  );
}

function RefusedAct({ error, force }: { error: unknown; force: () => void }) {
  const unknown = error instanceof Refusal && error.code === "broker_unreachable";
  return (
    <div role="alert">
      <p>
        <b>Refused.</b> {sentence(error)} The row is as it was.
      </p>
      {unknown ? (
        <button type="button" class="btn" onClick={force}>
          Requeue anyway; it may be doubled
        </button>
      ) : null}
    </div>
  );
}

function Edit({ body, send, cancel }: { body: string; send: (text: string) => void; cancel: () => void }) {
  const [text, setText] = useState(body);
  return (
    <div class="edit">
      <textarea aria-label="Body" rows={8} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      <div class="acts">
        <button type="button" class="btn main" onClick={() => send(text)}>
          Requeue with these words
        </button>
        <button type="button" class="btn" onClick={cancel}>
          Leave it
        </button>
      </div>
    </div>
  );
}

function Chain({ row }: { row: OutboxInspection }) {
  return (
    <div class="sec">
      <h3>Chain, oldest first</h3>
      <ol class="chain">
        {row.chain.map((one) => (
          <li key={one.id}>
            <RowLadder row={one} /> {one.id === row.id ? <b>{short(one.id)}</b> : <a href={link("outbox", one.id)}>{short(one.id)}</a>}
          </li>
        ))}
      </ol>
    </div>
  );
}

/** The reason in words; an unknown one is shown as it is. */
function why(row: OutboxItem): string {
  if (row.status === "aborted") return "A person retired it.";
  if (row.status !== "dead") return row.attempts === 0 ? "It waits for its turn." : "It is tried again by itself.";
  switch (row.dead_reason) {
    case "destination_gone":
      return "Nobody and nothing there is called that.";
    case "too_large":
      return "Its body is larger than the broker takes.";
    case "fp_conflict":
      return "Its id carries another message at the broker.";
    case "max_age":
      return "It was tried for as long as its mesh allows.";
    case "deliver_by":
      return "Its own deadline passed.";
    case "revoked":
      return "Its sender may not send there any more.";
    case "rejected":
      return "The broker refused it for good.";
    default:
      return row.dead_reason ? words(row.dead_reason) : "It was given up.";
  }
}
