/** The page's one broker: how it is reached, whether it answers, who we are there. */

import { computed, signal } from "@preact/signals";
import { Api, Away, Connection, Refusal, type SessionAnswer, type Standing, address, browser } from "../client";
import { cleared, raised, snapshot } from "./escalations";
import { say } from "./say";

export const world = browser();
export const api = new Api(world);

export type Session =
  | { kind: "reading" }
  | { kind: "in"; who: SessionAnswer }
  /** Nobody is signed in; with the refusal of a link that was just tried. */
  | { kind: "out"; refused: string | undefined }
  | { kind: "away" };

export const session = signal<Session>({ kind: "reading" });
export const standing = signal<Standing>({ kind: "idle" });

/** Our name in the mesh; empty while nobody is signed in. */
export const me = computed(() => (session.value.kind === "in" ? session.value.who.member.name : ""));
/** How far this browser's clock is behind the broker's. */
export const clockBehindMs = signal(0);
/** Since when the broker does not answer, if so. */
export const awaySince = computed(() => (standing.value.kind === "away" ? standing.value.since : undefined));

export const connection = new Connection(api, world, {
  standing(next) {
    const before = standing.value.kind;
    standing.value = next;
    if (next.kind === "away" && before === "live") say("Away from the broker. It reconnects by itself.");
    if (next.kind === "live" && before === "away") say("Back. Nothing was missed.");
    if (next.kind === "signed_out") session.value = { kind: "out", refused: undefined };
  },
  escalations: snapshot,
  raised,
  cleared,
});

/** Signs in with the key of the link, if the address holds one; else with the cookie of before. */
export async function signIn(): Promise<void> {
  const key = /^#key=(.+)$/.exec(location.hash)?.[1];
  if (key !== undefined) {
    // Used once and then worthless; still it has no business in the history.
    history.replaceState(null, "", location.pathname);
  }
  for (let attempt = 0; ; attempt += 1) {
    try {
      const who = await (key === undefined
        ? api.get<SessionAnswer>(address.session)
        : api.post<SessionAnswer>(address.session, { key: decodeURIComponent(key) }));
      clockBehindMs.value = Date.parse(who.now) - Date.now();
      session.value = { kind: "in", who };
      return;
    } catch (error) {
      if (error instanceof Refusal && !error.transient) {
        session.value = { kind: "out", refused: key === undefined ? undefined : error.message };
        return;
      }
      if (error instanceof Away && key !== undefined && attempt > 0) {
        // Whether the key was used is unknown; the cookie tells.
        return signInByCookie();
      }
      session.value = { kind: "away" };
      await new Promise((done) => setTimeout(done, 1_000));
    }
  }
}

async function signInByCookie(): Promise<void> {
  try {
    session.value = { kind: "in", who: await api.get<SessionAnswer>(address.session) };
  } catch {
    session.value = { kind: "out", refused: "The broker did not answer in time." };
  }
}

/** Ends the session at the broker, for good; whoever has no answer is still signed in and sees so. */
export async function signOut(): Promise<void> {
  try {
    await api.delete(address.session);
    connection.close();
    session.value = { kind: "out", refused: undefined };
  } catch {
    say("The broker did not answer; you are still signed in.");
  }
}

export function startConnection(): void {
  const hurry = () => connection.hurry();
  addEventListener("online", hurry);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) hurry();
  });
}
