/** Where is it, and why: one sentence, the road with its times, then every record in order. */

import { useEffect, useState } from "preact/hooks";
import type { ExplainedRecord } from "../client";
import { type Event, type Explained, events, explain, standing } from "../state/explained";
import { watch } from "../state/pulse";
import { inboxes } from "../state/receipts";
import { link, route } from "../state/route";
import { instant, span } from "../text/time";
import { count, short } from "../text/words";
import { Ask } from "./bar";
import { StandingLadder, colourOf } from "./ladder";
import { ClockTime, Cmd, Copy, Reading, Refused } from "./parts";
import { Ids } from "./receipt";

export function Explain() {
  const id = route.value.selected;
  const [known, setKnown] = useState<Explained | undefined>(undefined);
  const [error, setError] = useState<unknown>(undefined);
  useEffect(() => {
    setKnown(undefined);
    setError(undefined);
    if (id === undefined) return undefined;
    return watch(3_000, async () => {
      try {
        setKnown(await explain(id));
        setError(undefined);
      } catch (refused) {
        setError(refused);
      }
    });
  }, [id]);
  return (
    <div class="scroll" tabIndex={0} aria-label="Explain">
      <div class="wide">
        <Ask phone />
        {id === undefined ? <Empty /> : known ? <Life id={id} known={known} /> : error ? <Refused error={error} still="Asking never changes anything." /> : <Reading what="what is known" />}
      </div>
    </div>
  );
}

function Empty() {
  return (
    <div class="note">
      <h2>Paste any id</h2>
      <p>A client id, a message id or an outbox row. You get one sentence, then everything every holder knows. Asking never changes anything.</p>
      <Cmd line="postrider explain X4N8YE" />
      <Cmd line="postrider explain ci-4127-done" />
    </div>
  );
}

function Life({ id, known }: { id: string; known: Explained }) {
  const record = known.broker.records[0];
  if (!record && !known.row) return <NeverSeen id={id} known={known} />;
  const word = standing(known);
  const all = events(record, known);
  const client_message_id = record?.client_message_id ?? known.row?.client_message_id ?? id;
  return (
    <>
      <p class="mono dim idline">
        {id} <Copy text={id} />
      </p>
      <h2 class="verdict">{verdict(word, record, known)}</h2>
      <p class="mid">
        {record?.sender.name ?? known.row?.sender} to {record?.conversation_name ?? known.row?.to}
        {record && record.recipients.length === 1 ? ` (${record.recipients[0]?.name})` : ""}
        {", "}
        <StandingLadder word={word} small />
      </p>
      <Road record={record} known={known} word={word} />
      <div class="two">
        <Records all={all} />
        <div>
          <h2 class="sub">Ids</h2>
          {record ? <Ids record={record} /> : null}
          {record?.conversation && record.broker_message_id ? (
            <p class="more">
              <a href={link("conversations", record.conversation, record.broker_message_id)}>Show it in its conversation</a>
            </p>
          ) : null}
          <h2 class="sub">Same answer in a terminal</h2>
          <Cmd line={`postrider explain ${short(client_message_id)}`} />
          <p class="dim more">{askedWhom(known)}</p>
        </div>
      </div>
    </>
  );
}

function NeverSeen({ id, known }: { id: string; known: Explained }) {
  const unasked = known.broker.homes.filter((home) => home.unreachable).map((home) => home.node);
  return (
    <div class="note">
      <h2>Never seen here</h2>
      <p>
        No record that you may see holds <code>{id}</code>. {askedWhom(known)}
      </p>
      <p>
        {unasked.length > 0 ? `Unless ${unasked.join(", ")} holds it, nobody stored it.` : "Nobody stored it."} Whoever got no answer may ask again <b>with the same id</b>; it cannot
        double.
      </p>
    </div>
  );
}

/** Three places and the time between them. */
function Road({ record, known, word }: { record: ExplainedRecord | undefined; known: Explained; word: string }) {
  const colour = `c-${colourOf(word)}`;
  const queued_at = known.row?.enqueued_at ?? outboxOf(known)?.enqueued_at;
  const host = known.row?.rungs[0]?.by ?? known.broker.homes.find((home) => home.records?.some((one) => one.held === "outbox"))?.node;
  const accepted_at = record?.accepted_at ?? undefined;
  const copies = record?.recipients ?? [];
  const delivered = copies.flatMap((copy) => copy.delivered_at ?? []).sort();
  return (
    <div class={`road ${colour}`}>
      <Stop name={known.row ? "This host" : "Sender's host"} where={host ?? "no outbox"}>
        {queued_at ? <Step rung="queued" at={queued_at} /> : <p class="dim">Handed to the broker directly.</p>}
        {known.row && known.row.status !== "done" ? <p class="mid">{known.row.last_error ?? known.row.status}</p> : null}
      </Stop>
      <Leg from={queued_at} to={accepted_at} />
      <Stop name="Broker" where={known.broker.observer}>
        {accepted_at ? <Step rung="accepted" at={accepted_at} /> : <p class="dim">{record ? record.state : "never committed"}</p>}
        {record?.history_id ? <p class="mid">place {record.history_id}</p> : null}
        {record?.remembered_until ? (
          <p class="mid">
            id remembered to <ClockTime at={record.remembered_until} form="minutes" />
          </p>
        ) : null}
      </Stop>
      <Leg from={accepted_at} to={delivered[0]} />
      <Stop name={copies.length === 1 ? "Recipient" : "Recipients"} where={copies.length === 1 ? (copies[0]?.name ?? "") : count(copies.length, "copy", "copies")}>
        {copies.length === 1 ? <Steps copy={copies[0]} /> : copies.slice(0, 8).map((copy) => <Line key={copy.name} copy={copy} />)}
        {copies.length > 8 ? <p class="dim">{copies.length - 8} more in the list below</p> : null}
        {copies.length === 0 ? <p class="dim">{record ? "Nobody was subscribed." : "Not there yet."}</p> : null}
      </Stop>
    </div>
  );
}

function outboxOf(known: Explained) {
  for (const home of known.broker.homes) for (const held of home.records ?? []) if (held.held === "outbox") return held;
  return undefined;
}

function Stop({ name, where, children }: { name: string; where: string; children: preact.ComponentChildren }) {
  return (
    <section class="stop">
      <h3>
        {name} <span class="ell">{where}</span>
      </h3>
      {children}
    </section>
  );
}

function Step({ rung, at }: { rung: string; at: string }) {
  return (
    <p class="rung on">
      <i />
      <span class="w">{rung}</span>
      <span class="mono">
        <ClockTime at={at} form="milliseconds" />
      </span>
    </p>
  );
}

type Copied = ExplainedRecord["recipients"][number];

function Steps({ copy }: { copy: Copied | undefined }) {
  if (!copy) return null;
  const rungs = [
    ["delivered", copy.delivered_at],
    ["notified", copy.notified_at],
    ["engaged", copy.engaged_at],
    ["processed", copy.processed_at],
  ] as const;
  return (
    <>
      {rungs.map(([rung, at]) =>
        at ? (
          <Step key={rung} rung={rung} at={at} />
        ) : (
          <p class="rung" key={rung}>
            <i />
            <span class="w">{rung}</span>
          </p>
        ),
      )}
      {copy.ended_code ? <p class="mid">{copy.ended_code}</p> : null}
    </>
  );
}

function Line({ copy }: { copy: Copied }) {
  return (
    <p class="line">
      <span class="ell">{copy.name}</span>
      <StandingLadder word={copy.rung === "dead_letter" ? "dead" : copy.rung} reached="accepted" small />
    </p>
  );
}

function Leg({ from, to }: { from: string | undefined; to: string | undefined }) {
  return <div class="leg">{from && to ? <b>{span(instant(to) - instant(from))}</b> : null}</div>;
}

function Records({ all }: { all: Event[] }) {
  return (
    <div>
      <h2 class="sub">Everything we know, in order</h2>
      <table class="ev">
        <thead>
          <tr>
            <th>Time</th>
            <th class="hide-p">Who saw it</th>
            <th>What became true</th>
          </tr>
        </thead>
        <tbody>
          {all.map((event) => (
            <tr key={`${event.at} ${event.what}`}>
              <td class="mono mid">
                <ClockTime at={event.at} form="milliseconds" />
              </td>
              <td class="hide-p">{event.who}</td>
              <td class="wrap">
                {event.what} <span class="dim">{event.more}</span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function verdict(word: string, record: ExplainedRecord | undefined, { row }: Explained): string {
  const tries = row?.attempts ?? 0;
  const asked = tries > 1 ? ` Tried ${tries} times, stored ${record?.state === "accepted" ? "once" : "nowhere else"}.` : "";
  if (row && (row.status === "dead" || row.status === "aborted") && record?.state !== "accepted") {
    const reason = row.dead_reason ? `: ${row.dead_reason.replaceAll("_", " ")}` : "";
    return `${capital(row.receipt.rung)}${row.status === "dead" ? ", needs a person" : ""}${reason}.${asked}`;
  }
  const { note } = record && record.recipients.length > 1 ? inboxes(record) : { note: undefined };
  if (note !== undefined) return `${capital(word)}, ${note}.${asked}`;
  const only = record?.recipients.length === 1 ? record.recipients[0]?.name : undefined;
  const by = only !== undefined && word === "processed" ? ` by ${only}` : only !== undefined && word !== "accepted" ? ` to ${only}` : "";
  return `${capital(word)}${by}.${asked}`;
}

function capital(word: string): string {
  const words = word.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function askedWhom({ broker }: Explained): string {
  const asked = ["broker", ...broker.homes.filter((home) => !home.unreachable).map((home) => home.node)];
  const unasked = broker.homes.filter((home) => home.unreachable).map((home) => home.node);
  const silent = unasked.length > 0 ? ` Not reached: ${unasked.join(", ")}.` : " Every holder answered.";
  return `Asked: ${asked.join(", ")}.${silent}`;
}
