/** Agents and nodes: who is at home where, and when each node was last heard. */

import { useEffect } from "preact/hooks";
import { signal } from "@preact/signals";
import type { MemberRow, NodeRow } from "../client";
import { health } from "../state/local";
import { lookAtMembers, members } from "../state/members";
import { watch } from "../state/pulse";
import { talks, waiting } from "../state/talks";
import { link } from "../state/route";
import { count } from "../text/words";
import { Cmd, Reading, Time } from "./parts";

type Filter = "all" | "offline" | "held";
const filter = signal<Filter>("all");

export function Agents() {
  useEffect(() => watch(5_000, lookAtMembers), []);
  const all = members.value;
  if (!all) return <Reading what="members and nodes" />;
  const chosen: Record<Filter, NodeRow[]> = {
    all: all.nodes,
    offline: all.nodes.filter((node) => !node.linked),
    held: all.nodes.filter((node) => node.held > 0),
  };
  const hosted = all.members.filter((member) => !member.home);
  return (
    <section class="pane whole" aria-label="Agents and nodes">
      <div class="head">
        <h2 class="hide-p">Agents & nodes</h2>
        <div class="seg">
          <Choice of="all" name="All" n={all.nodes.length} />
          <Choice of="offline" name="Offline" n={chosen.offline.length} />
          <Choice of="held" name="Waiting mail" n={chosen.held.length} />
        </div>
      </div>
      <div class="scroll" tabIndex={0} aria-label="Agents and nodes, list">
        <table class="cards">
          <thead>
            <tr>
              <th>Member</th>
              <th>Kind</th>
              <th>Now</th>
              <th class="num">Waiting mail</th>
              <th>Last heard</th>
            </tr>
          </thead>
          {chosen[filter.value].map((node) => (
            <Node key={node.node} node={node} members={all.members.filter((member) => member.home === node.node)} />
          ))}
          {filter.value === "all" && hosted.length > 0 ? <Hosted members={hosted} /> : null}
        </table>
        <div class="foot">
          <p class="dim">Mail for a node that is offline is held at the broker, not dropped.</p>
          <p class="dim">Another host joins with what this prints:</p>
          <Cmd line="postrider invite" />
        </div>
      </div>
    </section>
  );
}

function Choice({ of, name, n }: { of: Filter; name: string; n: number }) {
  return (
    <button type="button" aria-pressed={filter.value === of} onClick={() => (filter.value = of)}>
      {name} <span class="c">{n}</span>
    </button>
  );
}

function Node({ node, members }: { node: NodeRow; members: MemberRow[] }) {
  const own = health.value?.meshes.find((mesh) => mesh.node === node.node);
  const outbox = own ? `outbox ${own.outbox.pending + own.outbox.inflight} open, ${own.outbox.dead} dead` : "its outbox is seen on its own host";
  return (
    <tbody>
      <tr class="node">
        <td>
          <span class="nm">{node.node}</span> {own ? <span class="dim">this host</span> : null}
        </td>
        <td class="dim hide-p ell">{outbox}</td>
        <td class="ns">
          <span class="live-word">
            <span class={`live ${node.linked ? "" : "off"}`} />
            {node.linked ? "live" : "offline"}
          </span>
        </td>
        <td class="num">
          <span class="p-in dim">mail held: </span>
          {node.held === 0 ? <span class="dim">none</span> : count(node.held, "message")}
        </td>
        <td class="when">
          <span class="p-in dim">heard </span>
          <Time at={node.last_seen_at} />
        </td>
      </tr>
      {members.map((member) => (
        <Member key={member.id} member={member} linked={node.linked} />
      ))}
    </tbody>
  );
}

function Hosted({ members }: { members: MemberRow[] }) {
  return (
    <tbody>
      <tr class="node">
        <td colSpan={5}>
          <span class="nm">at the broker</span> <span class="dim">services and webhooks</span>
        </td>
      </tr>
      {members.map((member) => (
        <Member key={member.id} member={member} linked />
      ))}
    </tbody>
  );
}

function Member({ member, linked }: { member: MemberRow; linked: boolean }) {
  const asks = [...waiting.value.values()].find((one) => one.sender === member.name);
  const talk = talks.value?.find((row) => row.conversation_name === `@${member.name}`);
  return (
    <tr class="row" tabIndex={0}>
      <td>
        {talk ? <a href={link("conversations", talk.conversation)}>{member.name}</a> : <b>{member.name}</b>}{" "}
        {asks ? (
          <a class="asks" href={link("conversations", asks.conversation_id)}>
            asks you
          </a>
        ) : null}
      </td>
      <td class="dim">
        {member.kind}
        {member.role === "owner" ? ", owner" : ""}
      </td>
      <td class="full">{linked ? <span class="dim">reachable</span> : "unreachable with its node"}</td>
      <td class="hide-p" />
      <td class="hide-p" />
    </tr>
  );
}
