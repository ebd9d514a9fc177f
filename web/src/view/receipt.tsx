/** A message's receipt: what is true of it, per recipient. */

import { useEffect, useState } from "preact/hooks";
import type { ExplainedRecipient, ExplainedRecord } from "../client";
import { type Explained, explain } from "../state/explained";
import { watch } from "../state/pulse";
import { inboxes, learned } from "../state/receipts";
import { link } from "../state/route";
import { count, isRung, short } from "../text/words";
import { StandingLadder, colourOf } from "./ladder";
import { ClockTime, Cmd, Facts, Head, Reading, Refused } from "./parts";

export function Receipt({ id, close }: { id: string; close: string }) {
  const [known, setKnown] = useState<Explained | undefined>(undefined);
  const [error, setError] = useState<unknown>(undefined);
  useEffect(() => {
    setKnown(undefined);
    setError(undefined);
    return watch(3_000, async () => {
      try {
        const explained = await explain(id);
        explained.broker.records.forEach(learned);
        setKnown(explained);
      } catch (refused) {
        setError(refused);
      }
    });
  }, [id]);
  const record = known?.broker.records[0];
  return (
    <aside class="pane detail" aria-label="Receipt">
      <Head title="Receipt" close={close} />
      <div class="scroll" tabIndex={0} aria-label="Receipt">
        {known ? record ? <Record record={record} known={known} /> : <Nobody /> : error ? <Refused error={error} still="The message itself is untouched." /> : <Reading what="the receipt" />}
      </div>
    </aside>
  );
}

function Nobody() {
  return (
    <div class="sec">
      <p class="lead">The broker holds no record of this id for you.</p>
    </div>
  );
}

function Record({ record, known }: { record: ExplainedRecord; known: Explained }) {
  const word = record.standing ?? record.state;
  const { note } = inboxes(record);
  return (
    <>
      <div class="sec">
        <p class="lead">
          {word[0]?.toUpperCase()}
          {word.slice(1)}
          {note === undefined ? "." : `, ${note}.`}
        </p>
        <p class="mid">{held(record, known)}</p>
      </div>
      <div class="sec">
        {known.row ? <Place name={`this host · ${known.row.rungs[0]?.by ?? ""}`} rung="queued" at={known.row.enqueued_at} word={word} detail="outbox row on disk" /> : null}
        {record.accepted_at ? <Place name="broker" rung="accepted" at={record.accepted_at} word={word} detail={`place ${record.history_id ?? "unknown"}`} /> : null}
      </div>
      <div class="sec">
        <h3>{record.recipients.length === 0 ? "No recipients" : count(record.recipients.length, "recipient")}</h3>
        {record.recipients.map((copy) => (
          <Copied key={copy.name} copy={copy} />
        ))}
      </div>
      <div class="sec">
        <Ids record={record} />
        <Cmd line={`postrider explain ${short(record.client_message_id)}`} />
        <p class="more">
          <a href={link("explain", record.broker_message_id ?? record.client_message_id)}>Everything we know, in order</a>
        </p>
      </div>
    </>
  );
}

export function Ids({ record }: { record: ExplainedRecord }) {
  const facts: Array<[string, string, string?]> = [["client id", record.client_message_id, record.client_message_id]];
  if (record.broker_message_id) facts.push(["message", record.broker_message_id, record.broker_message_id]);
  if (record.fingerprint_prefix) facts.push(["fingerprint", record.fingerprint_prefix, record.fingerprint_prefix]);
  return <Facts of={facts} />;
}

function Place({ name, rung, at, word, detail }: { name: string; rung: string; at: string; word: string; detail: string }) {
  return (
    <>
      <p class="place">{name}</p>
      <p class={`rung on c-${colourOf(word)}`}>
        <i />
        <span class="w">{rung}</span>
        <span class="d ell">{detail}</span>
        <span class="mono">
          <ClockTime at={at} form="milliseconds" />
        </span>
      </p>
    </>
  );
}

function Copied({ copy }: { copy: ExplainedRecipient }) {
  const last = copy.ended_at ?? copy.processed_at ?? copy.engaged_at ?? copy.notified_at ?? copy.delivered_at;
  const word = copy.rung === "dead_letter" ? "dead" : copy.rung;
  return (
    <div class="rcpt">
      <span class="ell">
        <b>{copy.name}</b> <span class="dim">{copy.home ?? "at the broker"}</span>
      </span>
      <StandingLadder word={word} reached="accepted" small />
      <span class="d">
        {last ? <ClockTime at={last} form="seconds" /> : `held at the broker for ${copy.home ?? "it"}`}
        {copy.read_at ? <>, read <ClockTime at={copy.read_at} form="seconds" /></> : null}
        {copy.ended_code ? `, ${copy.ended_code}` : ""}
        {isRung(word) || copy.ended_at ? "" : `, ${word}`}
      </span>
    </div>
  );
}

/** The sentence below the fact: whose copy waits, and whom nobody could ask. */
function held(record: ExplainedRecord, { broker }: Explained): string {
  const waits = record.recipients.filter((copy) => !copy.delivered_at && !copy.ended_at).map((copy) => copy.name);
  const unreachable = broker.homes.filter((home) => home.unreachable).map((home) => home.node);
  const parts: string[] = [];
  if (waits.length > 0) parts.push(`The broker holds the copy of ${waits.join(", ")} and delivers it when the node is there.`);
  if (unreachable.length > 0) parts.push(`Not asked: ${unreachable.join(", ")}, which did not answer.`);
  return parts.join(" ");
}
