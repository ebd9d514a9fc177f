/** Conflicts of the relay in this process: what waits for a person's word, and what was decided. */

import { useEffect } from "preact/hooks";
import { type Envelope, asker, compare, title } from "../state/conflicts";
import { watch } from "../state/pulse";
import { relay } from "../state/relay";
import { link, route } from "../state/route";
import { visible } from "../text/visible";
import { short } from "../text/words";
import { Conflict } from "./conflict";
import { Cmd, Reading, Time } from "./parts";

export function Conflicts() {
  useEffect(() => watch(3_000, () => relay.lookAtRows()), []);
  const { selected } = route.value;
  if (relay.here.value === "elsewhere") return <Elsewhere />;
  const all = relay.rows.value;
  if (!all) return <Reading what="the relay's conflicts" />;
  if (all.open.length === 0 && all.settled.length === 0 && selected === undefined) return <Nothing />;
  return (
    <>
      <section class="pane list" aria-label="Conflicts">
        <div class="head">
          <h2>Conflicts</h2>
          <div class="r">{all.open.length} open</div>
        </div>
        <div class="scroll">
          {[...all.open, ...all.settled].map((row) => (
            <Row key={row.envelope_id} row={row} />
          ))}
        </div>
      </section>
      {selected === undefined ? <Choose open={all.open.length} /> : <Conflict key={selected} id={selected} />}
    </>
  );
}

function Row({ row }: { row: Envelope }) {
  const open = row.status === "conflict";
  const current = route.value.selected === row.envelope_id;
  return (
    <a class="conv" href={link("conflicts", row.envelope_id)} aria-current={current ? "true" : undefined} data-row={row.envelope_id}>
      <span>{open ? <span class="dot" /> : null}</span>
      <span class="t ell">
        <bdi>{visible(title(row))}</bdi> {open ? <span class="vh">needs a person</span> : null}
      </span>
      <span>
        <Time at={row.ended_at ?? row.queued_at} />
      </span>
      <span class="s ell">
        <bdi>{open ? `${visible(asker(row))}: ${row.method} ${visible(row.path)}` : `settled: ${settled(row)}`}</bdi>
      </span>
    </a>
  );
}

/** What a person decided, in a few words. */
export function settled(row: Envelope): string {
  const how = row.resolution ?? "ended";
  return row.superseded_by === null ? how : `${how}, as ${short(row.superseded_by)}`;
}

/** The fields that clash, for a sentence. */
export function clashing(row: Envelope): string[] {
  return compare(row).filter((field) => field.clashes).map((field) => field.name);
}

function Nothing() {
  const status = relay.status.value;
  return (
    <div class="note">
      <h2>No conflicts.</h2>
      <p>The relay before {status?.upstream ?? "its upstream"} asks here when a write it kept clashes with what is there by then. Nothing is ever overwritten unasked.</p>
      {status?.paused ? <p class="warn">Replay is paused: {status.paused}. Nothing is sent until somebody looked.</p> : null}
      <Cmd line="postrider relay outbox status" />
    </div>
  );
}

function Choose({ open }: { open: number }) {
  return (
    <section class="pane thread" aria-label="No conflict chosen">
      <div class="note">
        <p class="dim">{open === 0 ? "All of them are settled." : "Choose a conflict to see both sides."}</p>
      </div>
    </section>
  );
}

function Elsewhere() {
  return (
    <div class="note">
      <h2>No relay of yours runs here</h2>
      <p>This page's process runs no relay, or it belongs to another person's home. Each relay shows its own conflicts, on its host:</p>
      <Cmd line="postrider relay outbox list --status conflict" />
      <p>To have them on this page, run the relay beside the home:</p>
      <Cmd line="postrider up --relay URL" />
    </div>
  );
}
