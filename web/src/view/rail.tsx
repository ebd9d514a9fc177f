/** The six views, with what waits for a person in each. */

import { me, session } from "../state/broker";
import { dead, health } from "../state/local";
import { members } from "../state/members";
import { relay } from "../state/relay";
import { VIEWS, type View, link, route } from "../state/route";
import { unread, waiting } from "../state/talks";
import { count } from "../text/words";
import { Brand, icons } from "./icons";

export const TITLES: Record<View, string> = {
  conversations: "Conversations",
  agents: "Agents & nodes",
  outbox: "Outbox & dead letters",
  conflicts: "Conflicts",
  explain: "Explain",
  health: "Health",
};
/** For narrow screens. */
export const SHORT: Record<View, string> = {
  conversations: "Talk",
  agents: "Nodes",
  outbox: "Outbox",
  conflicts: "Conflicts",
  explain: "Explain",
  health: "Health",
};

/** How many facts of a view only a person can settle. One fact lights one dot, where it is solved. */
function acts(view: View): number {
  switch (view) {
    case "conversations":
      return waiting.value.size;
    case "outbox":
      return dead.value;
    case "conflicts":
      return relay.count.value;
    case "agents":
    case "explain":
    case "health":
      return 0;
  }
}

export function Rail() {
  return (
    <aside class="rail">
      <p class="brand">
        <Brand />
        <b>postrider</b>
      </p>
      <nav class="nav" aria-label="Views">
        {VIEWS.map((view) => (
          <a key={view} href={link(view)} aria-current={route.value.view === view ? "page" : undefined} title={TITLES[view]}>
            {icons[view]}
            <span class="lbl">{TITLES[view]}</span>
            <Badge view={view} />
          </a>
        ))}
      </nav>
      <Mesh />
    </aside>
  );
}

export function Tabs() {
  return (
    <nav class="tabs" aria-label="Views, short">
      {VIEWS.map((view) => (
        <a key={view} href={link(view)} aria-current={route.value.view === view ? "page" : undefined}>
          {icons[view]}
          {acts(view) > 0 ? <span class="dot" /> : null}
          {SHORT[view]}
        </a>
      ))}
    </nav>
  );
}

function Badge({ view }: { view: View }) {
  const needs = acts(view);
  if (needs > 0) {
    return (
      <span class="n" title="needs a person">
        <span class="dot" />
        <b>{needs}</b>
        <span class="vh"> need a person</span>
      </span>
    );
  }
  if (view === "conversations" && unread.value > 0) {
    return (
      <span class="n q" title="unread">
        {unread.value}
        <span class="vh"> unread</span>
      </span>
    );
  }
  return null;
}

function Mesh() {
  const now = session.value;
  if (now.kind !== "in") return null;
  const all = members.value;
  const agents = all?.members.filter((member) => member.kind === "agent").length ?? 0;
  const node = health.value?.meshes[0]?.node;
  return (
    <div class="mesh">
      <b>{now.who.mesh.slug}</b>
      <br />
      {all ? `${count(all.nodes.length, "node")}, ${agents === 0 ? "no agents yet" : count(agents, "agent")}` : "unknown"}
      <br />
      you are {me.value}
      {node === undefined ? "" : ` on ${node}`}
    </div>
  );
}
