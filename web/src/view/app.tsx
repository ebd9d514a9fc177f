/** The frame: rail, bar, strip, one view. */

import { useEffect } from "preact/hooks";
import { awaySince, session } from "../state/broker";
import { type View, route } from "../state/route";
import { relay } from "../state/relay";
import { said } from "../state/say";
import { dead } from "../state/local";
import { waiting } from "../state/talks";
import { minute } from "../state/pulse";
import { clock } from "../text/time";
import { Agents } from "./agents";
import { Bar } from "./bar";
import { Conflicts } from "./conflicts";
import { Explain } from "./explain";
import { Health } from "./health";
import { Help } from "./help";
import { Outbox } from "./outbox";
import { Rail, Tabs, TITLES } from "./rail";
import { SignIn } from "./sign_in";
import { Talks } from "./talks";

const PAGES: Record<View, () => preact.JSX.Element> = {
  conversations: Talks,
  agents: Agents,
  outbox: Outbox,
  conflicts: Conflicts,
  explain: Explain,
  health: Health,
};

export function App() {
  const acts = waiting.value.size + dead.value + relay.count.value;
  const { view, selected } = route.value;
  const inside = session.value.kind === "in";
  useEffect(() => {
    document.title = `${acts > 0 && inside ? `(${acts}) ` : ""}${inside ? TITLES[view] : "Sign in"} · Postrider`;
  }, [acts, view, inside]);
  if (!inside) return <SignIn />;
  const Page = PAGES[view];
  return (
    <>
      <div id="frame" data-view={view} data-selected={selected === undefined ? "no" : "yes"}>
        <a class="skip" href="#main" onClick={skip}>
          To the content
        </a>
        <Rail />
        <Bar />
        <Strip />
        <main id="main" tabIndex={-1}>
          <h1 class="vh">{TITLES[view]}</h1>
          <Page />
        </main>
        <Tabs />
      </div>
      <Help />
      <div class="vh" aria-live="polite" role="status" id="say">
        {said.value}
      </div>
    </>
  );
}

/** Away is said at once, with since when; what is shown stays and says from when it is. */
function Strip() {
  const since = awaySince.value;
  if (since === undefined) return null;
  return (
    <div class="strip">
      <b>Away from the broker since {clock(since, minute.value, "seconds")}</b>
      <span>You see what was true then. What you type stays in this tab and is not stored. It reconnects by itself.</span>
    </div>
  );
}

/** The address holds the view, so the jump must not change it. */
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}
