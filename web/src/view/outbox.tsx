/** Outbox and dead letters of the home in this process: what waits, what died, and what a person can do. */

import { computed, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { type OutboxItem, here, local, lookAtHealth, lookAtOutbox, outbox } from "../state/local";
import { minute, watch } from "../state/pulse";
import { go, link, route } from "../state/route";
import { say } from "../state/say";
import { clock, instant } from "../text/time";
import { count, isEnding, short } from "../text/words";
import { Ladder } from "./ladder";
import { OutboxRow } from "./outbox_row";
import { Cmd, Reading, Time, sentence } from "./parts";

type Filter = "all" | "dead" | "pending" | "inflight" | "aborted";
const NAMES: Record<Filter, string> = { all: "All", dead: "Needs you", pending: "Pending", inflight: "In flight", aborted: "Aborted" };
const FILTERS: Filter[] = ["all", "dead", "pending", "inflight", "aborted"];

const filter = signal<Filter>("all");
const ticked = signal<ReadonlySet<string>>(new Set());
/** What each act answered, by row; it stays until the row goes. */
const answers = signal<ReadonlyMap<string, string>>(new Map());
/** The rows as they were when the reader last asked for them: none moves under a hand. */
const frozen = signal<readonly OutboxItem[] | undefined>(undefined);

const fresh = computed(() => outbox.value?.items ?? []);
const hidden = computed(() => {
  const known = new Set(frozen.value?.map((row) => row.id));
  return fresh.value.filter((row) => !known.has(row.id)).length;
});
/** Frozen order, with each row's newest facts; new rows wait to be asked for. */
const rows = computed(() => {
  const now = new Map(fresh.value.map((row) => [row.id, row]));
  const kept = (frozen.value ?? fresh.value).flatMap((row) => now.get(row.id) ?? (answers.value.has(row.id) ? row : []));
  return filter.value === "all" ? kept : kept.filter((row) => row.status === filter.value);
});

export function Outbox() {
  useEffect(() => {
    frozen.value = undefined;
    return watch(3_000, async () => {
      await lookAtHealth();
      await lookAtOutbox();
      frozen.value ??= outbox.value?.items;
    });
  }, []);
  if (here.value === "elsewhere") return <Elsewhere />;
  const all = outbox.value;
  if (!all) return <Reading what="the outbox" />;
  const { selected } = route.value;
  return (
    <>
      <section class="pane whole" aria-label="Outbox">
        <div class="head">
          <h2 class="hide-p">Outbox</h2>
          <div class="seg">
            {FILTERS.map((of) => (
              <button key={of} type="button" aria-pressed={filter.value === of} onClick={() => (filter.value = of)}>
                {NAMES[of]} <span class="c">{of === "all" ? all.items.length : all.counts[of]}</span>
              </button>
            ))}
          </div>
          <div class="r">
            {hidden.value > 0 ? (
              <button type="button" class="btn low" onClick={() => (frozen.value = fresh.value)}>
                {count(hidden.value, "new row")}
              </button>
            ) : null}
          </div>
        </div>
        <div class="scroll" tabIndex={0} aria-label="Rows of the outbox">
          <Table />
          <p class="foot dim">
            {rows.value.length === 0 ? "Nothing waits here." : `${count(rows.value.length, "row")}, as of ${clock(all.at, minute.value, "seconds")}.`} Accepted
            rows leave this list; <a href={link("explain")}>Explain</a> still finds them.
          </p>
        </div>
        <Bulk />
      </section>
      {selected === undefined ? null : <OutboxRow id={selected} close={link("outbox")} />}
    </>
  );
}

function Elsewhere() {
  return (
    <div class="note">
      <h2>This host's outbox is not here</h2>
      <p>This page is served by a broker that runs without a home of yours. Each host shows its own outbox and dead letters:</p>
      <Cmd line="postrider daemon outbox list" />
      <p>
        What the broker knows about a message is under <a href={link("explain")}>Explain</a>.
      </p>
    </div>
  );
}

function Table() {
  if (rows.value.length === 0) return null;
  return (
    <table class="cards">
      <thead>
        <tr>
          <th class="tick">
            <span class="vh">Ticked</span>
          </th>
          <th>Receipt</th>
          <th>Row</th>
          <th>To</th>
          <th>Next, and the last answer</th>
          <th class="num">Asked</th>
        </tr>
      </thead>
      <tbody>
        {rows.value.map((row) => (
          <Row key={row.id} row={row} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ row }: { row: OutboxItem }) {
  const selected = route.value.selected === row.id;
  const answer = answers.value.get(row.id);
  const open = () => go("outbox", row.id);
  return (
    <tr class="row" aria-selected={selected} tabIndex={0} data-row={row.id} onClick={open} onKeyDown={(event) => event.key === "Enter" && event.target === event.currentTarget && open()}>
      <td class="tick hide-p" onClick={(event) => event.stopPropagation()}>
        <input type="checkbox" aria-label={`Tick ${short(row.id)}`} checked={ticked.value.has(row.id)} onChange={(event) => tick(row.id, event.currentTarget.checked)} />
      </td>
      <td>
        <RowLadder row={row} />
      </td>
      <td class="mono mid hide-p">
        <a href={link("outbox", row.id)}>{short(row.id)}</a>
      </td>
      <td class="full">
        <b>{row.to}</b> <span class="dim">from {row.sender}</span>
      </td>
      <td class="w100 full">
        {answer === undefined ? (
          <>
            <span class={row.status === "dead" ? "asks" : ""}>{next(row)}</span> <span class="dim">{row.last_error ?? (row.attempts === 0 ? "not tried yet" : "")}</span>
          </>
        ) : (
          <span role="status">{answer}</span>
        )}
      </td>
      <td class="num dim when">
        <Time at={row.enqueued_at} />
      </td>
    </tr>
  );
}

export function RowLadder({ row }: { row: OutboxItem }) {
  const word = row.receipt.rung;
  if (isEnding(word)) return <Ladder rung="queued" ending={word} small />;
  return <Ladder rung={row.status === "done" ? "accepted" : "queued"} small />;
}

function next(row: OutboxItem): string {
  switch (row.status) {
    case "dead":
      return "needs you";
    case "inflight":
      return "with the broker";
    case "pending":
      return row.next_attempt_at ? `at ${clock(instant(row.next_attempt_at), minute.value, "seconds")}` : "goes next";
    case "done":
      return "done";
    case "aborted":
      return row.superseded_by ? `replaced by ${short(row.superseded_by)}` : "no more";
  }
}

function tick(id: string, on: boolean): void {
  const set = new Set(ticked.value);
  if (on) set.add(id);
  else set.delete(id);
  ticked.value = set;
}

/** Acts on exactly the ticked rows; each gets its own answer. */
function Bulk() {
  const confirming = sure.value;
  const shown = rows.value.filter((row) => ticked.value.has(row.id));
  if (shown.length === 0) return null;
  const n = shown.length;
  return (
    <div class="bulk hide-p" role="toolbar" aria-label="Acts on ticked rows">
      <b>{n} ticked</b>
      <button type="button" class="btn" onClick={() => void each(shown, async (row) => `requeued as ${short((await local.requeue({ id: row.id })).new_row_id)}`)}>
        Requeue {n}
      </button>
      {confirming ? (
        <button type="button" class="btn" onClick={() => void each(shown, async (row) => `aborted, ${words((await local.abort(row.id)).outcome)}`)}>
          Really abort {n}
        </button>
      ) : (
        <button type="button" class="btn" onClick={() => (sure.value = true)}>
          Abort {n}…
        </button>
      )}
      <span class="dim hide-m">Acts on exactly these rows; each gets its own answer.</span>
    </div>
  );
}

const sure = signal(false);

async function each(all: readonly OutboxItem[], act: (row: OutboxItem) => Promise<string>): Promise<void> {
  sure.value = false;
  ticked.value = new Set();
  for (const row of all) {
    const answer = await act(row).catch((error: unknown) => `refused: ${sentence(error)}`);
    answers.value = new Map(answers.value).set(row.id, answer);
  }
  say(`${count(all.length, "row")} answered`);
  await lookAtOutbox().catch(() => undefined);
}

/** `not_accepted` as people say it. */
export function words(outcome: string): string {
  return outcome.replaceAll("_", " ");
}
