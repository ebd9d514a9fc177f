/** Time for the screen: relative times change on the minute, all at once. */

import { signal } from "@preact/signals";

/** The instant that ages are counted to. */
export const minute = signal(Date.now());

export function startPulse(): void {
  const next = () => {
    minute.value = Date.now();
    setTimeout(next, 60_000 - (Date.now() % 60_000) + 20);
  };
  next();
}

/** Runs `look` at once, then every `every_ms` while somebody looks at the page. The answer ends it. */
export function watch(every_ms: number, look: () => Promise<void>): () => void {
  let ended = false;
  let looking = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const round = async () => {
    if (looking) return;
    looking = true;
    clearTimeout(timer);
    if (!document.hidden) await look().catch(() => undefined);
    looking = false;
    if (!ended) timer = setTimeout(() => void round(), every_ms);
  };
  const seen = () => {
    if (!document.hidden && !ended) void round();
  };
  document.addEventListener("visibilitychange", seen);
  void round();
  return () => {
    ended = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", seen);
  };
}
