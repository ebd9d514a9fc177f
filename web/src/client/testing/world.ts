/** A world for tests: time stands until it is moved, the network answers what the test says. */

import { Api } from "../api";
import { Connection, type Listener, type Standing } from "../connection";
import { Conversation, type View } from "../conversation";
import type { Escalation, Frame, Message } from "../frames";
import type { SocketLike, Surroundings } from "../surroundings";

/** The server's end of a socket. */
export class FakeSocket implements SocketLike {
  sent: Array<Record<string, unknown>> = [];
  closed = false;
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: ((event: { code: number; reason: string }) => void) | null = null;
  constructor(readonly protocols: string[]) {}
  send(text: string): void {
    this.sent.push(JSON.parse(text) as Record<string, unknown>);
  }
  close(): void {
    this.closed = true;
    this.onclose?.({ code: 1000, reason: "" });
  }
  /** The upgrade is answered. */
  accept(): void {
    this.onopen?.();
  }
  /** A frame arrives. */
  says(frame: Frame): void {
    this.onmessage?.({ data: JSON.stringify(frame) });
  }
  /** The connection breaks. */
  breaks(code = 1006): void {
    this.onclose?.({ code, reason: "" });
  }
  subscribes(): Array<Record<string, unknown>> {
    return this.sent.filter((frame) => frame["type"] === "subscribe");
  }
  /** The tag of the newest subscribe. */
  get sub(): string {
    return this.subscribes().at(-1)?.["sub"] as string;
  }
}

/** An answer the test gives: a status with a body, or no answer at all. */
export type Answer = { status: number; body: unknown } | "away";

export interface Call {
  method: string;
  path: string;
  body: unknown;
  answer(answer: Answer): Promise<void>;
}

export class World implements Surroundings {
  time = 1_000_000;
  sockets: FakeSocket[] = [];
  calls: Call[] = [];
  /** Tickets are given at once, unless the test answers them itself. */
  tickets: "given" | "asked" = "given";
  standings: Standing[] = [];
  escalations: Escalation[][] = [];
  #timers: Array<{ at: number; run: () => void }> = [];

  readonly api = new Api(this);
  readonly listener: Listener = {
    standing: (standing) => this.standings.push(standing),
    escalations: (open) => this.escalations.push(open),
    raised: () => undefined,
    cleared: () => undefined,
  };
  readonly connection = new Connection(this.api, this, this.listener);
  view: View | undefined;

  now = () => this.time;
  random = () => 1;
  after = (delay_ms: number, run: () => void) => {
    const timer = { at: this.time + delay_ms, run };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((kept) => kept !== timer);
    };
  };
  soon = (run: () => void) => run();
  socket = (_path: string, protocols: string[]) => {
    const socket = new FakeSocket(protocols);
    this.sockets.push(socket);
    return socket;
  };
  fetch = (path: string, init: RequestInit) =>
    new Promise<Response>((resolve, reject) => {
      const answer = async (given: Answer) => {
        if (given === "away") reject(new TypeError("no network"));
        else resolve(new Response(JSON.stringify(given.body), { status: given.status }));
        await settle();
      };
      if (path === "/v1/tickets" && this.tickets === "given") {
        void answer({ status: 200, body: { ticket: "t", expires_at: "" } });
        return;
      }
      const body: unknown = typeof init.body === "string" ? JSON.parse(init.body) : undefined;
      this.calls.push({ method: init.method ?? "GET", path, body, answer });
    });

  /** The newest call that was made. */
  get call(): Call {
    const call = this.calls.at(-1);
    if (!call) throw new Error("nobody called");
    return call;
  }

  get server(): FakeSocket {
    const socket = this.sockets.at(-1);
    if (!socket) throw new Error("no socket was opened");
    return socket;
  }

  get rows(): Array<string> {
    const rows = this.view?.log.rows ?? [];
    return rows.map((row) => (row.kind === "message" ? row.message.body : `gap of ${row.rows}`));
  }

  /** Lets time pass; what falls due runs in order. */
  async pass(delay_ms: number): Promise<void> {
    const until = this.time + delay_ms;
    for (;;) {
      const due = this.#timers.filter((timer) => timer.at <= until).sort((a, b) => a.at - b.at)[0];
      if (!due) break;
      this.#timers = this.#timers.filter((kept) => kept !== due);
      this.time = due.at;
      due.run();
      await settle();
    }
    this.time = until;
    await settle();
  }

  /** A conversation whose page was read and whose subscription is caught up. */
  async conversation(messages: Message[] = [], cursor = "c0"): Promise<Conversation> {
    const conversation = new Conversation("conv", "jane", this.api, this.connection, this, (view) => {
      this.view = view;
    });
    const opening = conversation.open();
    await this.call.answer({ status: 200, body: page(messages, cursor) });
    await opening;
    await settle();
    this.server.accept();
    this.server.says({ type: "subscribed", conversation_id: "conv", sub: this.server.sub, cursor, generation: 0 });
    return conversation;
  }
}

/** Lets promises that can go on go on. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 12; turn += 1) await Promise.resolve();
}

export function page(messages: Message[], cursor: string, before = "", has_more = false) {
  return { messages, cursor, before, has_more };
}

export function message(n: number, more: Partial<Message> = {}): Message {
  return {
    id: `id-${n}`,
    conversation: "conv",
    history_id: n,
    sender: "ci",
    created_at: "2026-11-15T21:00:00.000000Z",
    cursor: `c${n}`,
    client_message_id: `theirs-${n}`,
    to: "#alerts",
    body: `m${n}`,
    body_version: 1,
    ...more,
  } as Message;
}

export function frame(n: number, sub: string, more: Partial<Message> = {}): Frame {
  return { type: "message", ...message(n, more), sub };
}
