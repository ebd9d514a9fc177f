/** Health: what needs a person, then rates and lags since this page was opened. */

import { useEffect } from "preact/hooks";
import { SAMPLE_EVERY_MS, type Sample, rates, samples } from "../state/figures";
import { dead, health, here, lookAtHealth } from "../state/local";
import { watch } from "../state/pulse";
import { relay } from "../state/relay";
import { link } from "../state/route";
import { waiting } from "../state/talks";
import { span } from "../text/time";
import { count } from "../text/words";
import { Cmd, Time } from "./parts";

export function Health() {
  useEffect(() => watch(SAMPLE_EVERY_MS, lookAtHealth), []);
  const findings = (dead.value > 0 ? 1 : 0) + (relay.count.value > 0 ? 1 : 0) + (relay.status.value?.paused ? 1 : 0) + (waiting.value.size > 0 ? 1 : 0) + (health.value?.problems.length ?? 0);
  return (
    <div class="scroll" tabIndex={0} aria-label="Health">
      <div class="wide">
        <h2 class="verdict">{findings === 0 ? "Nothing needs you." : `${count(findings, "finding")}.`}</h2>
        <p class="dim">
          {here.value === "here" ? "This host and the broker; " : "The broker; this host's own health is seen on it. "}
          the whole look is <code>postrider doctor</code>
        </p>
        <Findings />
        <h2 class="sub">Since this page was opened</h2>
        <Figures all={samples.value} />
        <h2 class="sub">This host</h2>
        <Host />
      </div>
    </div>
  );
}

function Findings() {
  const problems = health.value?.problems ?? [];
  return (
    <div class="finds">
      {dead.value > 0 ? (
        <div class="find">
          <span class="k asks">act</span>
          <div>
            <b>{count(dead.value, "dead letter waits", "dead letters wait")} for a person.</b> <a href={link("outbox")}>Outbox</a>
          </div>
        </div>
      ) : null}
      {relay.count.value > 0 ? (
        <div class="find">
          <span class="k asks">act</span>
          <div>
            <b>{count(relay.count.value, "conflict waits", "conflicts wait")} for a person.</b> <a href={link("conflicts")}>Conflicts</a>
          </div>
        </div>
      ) : null}
      {relay.status.value?.paused ? (
        <div class="find">
          <span class="k asks">act</span>
          <div>
            <b>The relay's replay is paused:</b> {relay.status.value.paused}. <code>postrider relay outbox replay</code> goes on.
          </div>
        </div>
      ) : null}
      {[...waiting.value.values()].slice(0, 5).map((one) => (
        <div class="find" key={one.conversation_id}>
          <span class="k asks">act</span>
          <div>
            <b>{one.sender} waits for an answer</b>, asked <Time at={one.created_at} />. <a href={link("conversations", one.conversation_id)}>{one.conversation_name}</a>
          </div>
        </div>
      ))}
      {problems.map((problem) => (
        <div class="find" key={problem}>
          <span class="k warn">warn</span>
          <div>{problem}</div>
        </div>
      ))}
    </div>
  );
}

function Figures({ all }: { all: readonly Sample[] }) {
  const last = all.at(-1);
  if (!last || all.length < 2) return <p class="dim">Two looks are needed for a rate; the second follows in {SAMPLE_EVERY_MS / 1_000} s.</p>;
  const accepted = rates(all, (sample) => sample.accepted);
  const repeats = rates(all, (sample) => sample.repeats);
  const refused = rates(all, (sample) => sample.refused);
  return (
    <div class="grid">
      <Figure name="Accepted" value={round(accepted.at(-1))} unit="a minute" note={`${last.accepted.toLocaleString("en")} since the broker's start`} plot={accepted} />
      <Figure name="Repeats answered" value={round(repeats.at(-1))} unit="a minute" note={`${last.repeats.toLocaleString("en")} in all; none doubled`} plot={repeats} />
      <Figure name="Refused" value={round(refused.at(-1))} unit="a minute" note={`${last.refused.toLocaleString("en")} in all`} plot={refused} />
      <Figure name="Answer time" value={span(last.answered_ms)} unit="" note="of the list of conversations" plot={all.map((sample) => sample.answered_ms)} />
      <Figure name="Links open" value={String(last.links)} unit="" note="nodes at this broker" plot={all.map((sample) => sample.links)} />
      {last.waiting === undefined ? null : (
        <Figure name="Queued here" value={String(last.waiting)} unit="" note="rows not yet accepted" plot={all.map((sample) => sample.waiting ?? 0)} />
      )}
      {last.oldest_ms === undefined ? null : (
        <Figure name="Oldest unaccepted" value={last.oldest_ms === 0 ? "none" : span(last.oldest_ms)} unit="" note="of this host's outbox" plot={all.map((sample) => sample.oldest_ms ?? 0)} />
      )}
    </div>
  );
}

function Figure({ name, value, unit, note, plot }: { name: string; value: string; unit: string; note: string; plot: readonly number[] }) {
  return (
    <div class="fig">
      <p class="l">{name}</p>
      <p class="v">
        {value} <small>{unit}</small>
      </p>
      <Spark plot={plot} />
      <p class="s ell">{note}</p>
    </div>
  );
}

/** One bar a sample; the figure above says the number, so the plot is decoration to a screen reader. */
function Spark({ plot }: { plot: readonly number[] }) {
  const shown = plot.slice(-48);
  const top = Math.max(...shown, 1e-9);
  return (
    <svg class="spark" viewBox="0 0 240 24" preserveAspectRatio="none" aria-hidden="true">
      {shown.map((value, place) => {
        const height = Math.max(1, (22 * value) / top);
        return <rect key={place} x={240 - (shown.length - place) * 5} y={24 - height} width={4} height={height} fill="currentColor" />;
      })}
    </svg>
  );
}

function Host() {
  const now = health.value;
  if (!now) return <Cmd line="postrider status" />;
  return (
    <>
      {now.meshes.map((mesh) => (
        <p key={mesh.mesh} class="mid">
          <b>{mesh.mesh}</b>: {mesh.person} on {mesh.node}, link {mesh.link} since <Time at={mesh.link_since} />
          {mesh.reason ? ` (${mesh.reason})` : ""}; {count(mesh.outbox.pending + mesh.outbox.inflight, "row")} queued, {mesh.outbox.dead} dead; inbox {mesh.inbox_unread} unread of {mesh.inbox_total}
        </p>
      ))}
      <p class="dim">
        {now.daemon_version}, up {span(now.uptime_s * 1_000)}, runs {now.roles.join(", ") || "unknown roles"}
      </p>
    </>
  );
}

function round(rate: number | undefined): string {
  if (rate === undefined) return "unknown";
  return rate >= 10 || rate === 0 ? String(Math.round(rate)) : rate.toFixed(1);
}
