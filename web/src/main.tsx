/** The page's start: who are we, then what there is, then everything that keeps it fresh. */

import { effect, untracked } from "@preact/signals";
import { render } from "preact";
import { Refusal } from "./client";
import { connection, session, signIn, standing, startConnection } from "./state/broker";
import { SAMPLE_EVERY_MS, takeSample } from "./state/figures";
import { lookAtHealth } from "./state/local";
import { lookAtMembers } from "./state/members";
import { startPulse, watch } from "./state/pulse";
import { relay } from "./state/relay";
import { startRoute } from "./state/route";
import { startSettings } from "./state/settings";
import { lookAtTalks } from "./state/talks";
import { startThread } from "./state/thread";
import "./style/index.css";
import { App } from "./view/app";
import { startKeys } from "./view/keys";

startSettings();
startRoute();
startPulse();
startKeys();
const host = document.getElementById("app");
if (host) render(<App />, host);

let stops: Array<() => void> = [];
effect(() => {
  const { kind } = session.value;
  for (const stop of stops) stop();
  stops = kind === "in" ? untracked(begin) : [];
});
startConnection();
startThread();
void signIn();

/** A session that ended shows the way in again. */
function signedOut(error: unknown): never {
  if (error instanceof Refusal && error.status === 401) session.value = { kind: "out", refused: undefined };
  throw error;
}

/** What runs while somebody is signed in. */
function begin(): Array<() => void> {
  return [
    watch(3_000, async () => {
      await lookAtTalks().catch(signedOut);
      // Also a page that follows nothing hears who waits for an answer.
      connection.open();
    }),
    watch(15_000, lookAtMembers),
    watch(SAMPLE_EVERY_MS, async () => {
      await lookAtHealth();
      await relay.look();
      await takeSample();
    }),
    // Back from away: the list is older than the threads.
    effect(() => {
      if (standing.value.kind === "live") void lookAtTalks().catch(() => undefined);
    }),
  ];
}
