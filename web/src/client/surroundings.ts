/** Time, chance and the network as arguments, so that every rule can be tested without them. */

export interface Surroundings {
  now(): number;
  random(): number;
  /** Runs once after `delay_ms`; the answer takes it back. */
  after(delay_ms: number, run: () => void): () => void;
  fetch(path: string, init: RequestInit): Promise<Response>;
  socket(path: string, protocols: string[]): SocketLike;
  /** Runs once, soon, when the screen is drawn next. */
  soon(run: () => void): void;
}

/** What is used of a WebSocket. */
export interface SocketLike {
  send(text: string): void;
  close(): void;
  onopen: (() => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onclose: ((event: { code: number; reason: string }) => void) | null;
}

/** A browser's own. */
export function browser(): Surroundings {
  return {
    now: () => Date.now(),
    random: () => Math.random(),
    after(delay_ms, run) {
      const timer = setTimeout(run, delay_ms);
      return () => clearTimeout(timer);
    },
    fetch: (path, init) => fetch(path, init),
    socket(path, protocols) {
      const url = new URL(path, location.href);
      url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
      url.hash = "";
      return new WebSocket(url, protocols) as SocketLike;
    },
    soon(run) {
      // A hidden tab draws nothing; it still has to keep up.
      if (document.hidden) setTimeout(run, 100);
      else requestAnimationFrame(() => run());
    },
  };
}
