/**
 * One socket for every conversation that is open.
 *
 * - It opens when somebody subscribes, which is after that conversation's first page was read.
 * - A subscription owns its cursor. It moves with each row handed over, and after a drop the socket subscribes
 *   there: neither gap nor repeat, and nothing has to be recognised by its id.
 * - Each subscribe carries a new tag; a frame with another tag belongs to a subscription that is over.
 * - It comes back by itself, with growing, jittered waits. A socket that says nothing is asked, then given up.
 */

import { type Api, address } from "./api";
import { retryDelay } from "./backoff";
import type { Cleared, Escalation, Frame, MessageFrame } from "./frames";
import { Refusal } from "./refusal";
import type { SocketLike, Surroundings } from "./surroundings";
import type { TicketAnswer } from "./types";

/** Silence after which the server is asked whether it is there. */
export const QUIET_MAX_MS = 15_000;
/** How long it may think about that. */
export const PONG_MAX_MS = 5_000;
/** Upgrades that neither open nor close. */
export const OPEN_MAX_MS = 10_000;

export type Standing =
  | { kind: "idle" }
  | { kind: "opening"; since: number }
  | { kind: "live"; since: number }
  | { kind: "away"; since: number }
  | { kind: "signed_out" };

/** What a subscription's owner hears. */
export interface Sink {
  message(frame: MessageFrame): void;
  /** Everything up to here was handed over; from now on rows are new. */
  caughtUp(cursor: string): void;
  /** The socket is gone; it comes back by itself and goes on at the kept cursor. */
  dropped(): void;
  /** The cursor leads nowhere any more (history cleared, restored, pruned): read the newest page again. */
  expired(): void;
}

/** What everybody on the page hears. */
export interface Listener {
  standing(standing: Standing): void;
  escalations(open: Escalation[]): void;
  raised(escalation: Escalation): void;
  cleared(cleared: Cleared): void;
}

interface Subscription {
  conversation: string;
  cursor: string;
  sub: string;
  sink: Sink;
}

export class Connection {
  #standing: Standing = { kind: "idle" };
  #socket: SocketLike | undefined;
  #subscriptions = new Map<string, Subscription>();
  #attempt = 0;
  #tags = 0;
  #cancelRetry: (() => void) | undefined;
  #cancelWatch: (() => void) | undefined;

  constructor(
    private readonly api: Api,
    private readonly surroundings: Surroundings,
    private readonly listener: Listener,
  ) {}

  get standing(): Standing {
    return this.#standing;
  }

  /** Follows `conversation` after `cursor`. A second subscribe of one conversation replaces the first. */
  subscribe(conversation: string, cursor: string, sink: Sink): void {
    const subscription = { conversation, cursor, sub: this.#tag(), sink };
    this.#subscriptions.set(conversation, subscription);
    if (this.#standing.kind === "live") this.#ask(subscription);
    else this.open();
  }

  unsubscribe(conversation: string): void {
    if (!this.#subscriptions.delete(conversation)) return;
    if (this.#standing.kind === "live") this.#send({ type: "unsubscribe", conversation_id: conversation });
  }

  /** Opens the socket if it is not; for a page that has nothing to subscribe yet but wants escalations. */
  open(): void {
    const { kind } = this.#standing;
    if (kind === "idle" || kind === "signed_out") this.#dial(this.surroundings.now());
  }

  /** Tries at once instead of waiting: the browser says the network is back, or a person looks. */
  hurry(): void {
    if (this.#standing.kind === "away" && this.#cancelRetry !== undefined) this.#dial(this.#standing.since);
  }

  close(): void {
    this.#leave();
    this.#subscriptions.clear();
    this.#stand({ kind: "idle" });
  }

  #dial(since: number): void {
    this.#cancelRetry?.();
    this.#cancelRetry = undefined;
    if (this.#standing.kind !== "away") this.#stand({ kind: "opening", since });
    this.#ticket().then(
      (ticket) => this.#upgrade(ticket, since),
      (error: unknown) => {
        if (error instanceof Refusal && error.status === 401) this.#stand({ kind: "signed_out" });
        else this.#lost(since);
      },
    );
  }

  async #ticket(): Promise<string> {
    const answer = await this.api.post<TicketAnswer>(address.tickets, {});
    return answer.ticket;
  }

  #upgrade(ticket: string, since: number): void {
    if (this.#standing.kind === "idle") return;
    const socket = this.surroundings.socket(address.subscribe, ["postrider.v1", `ticket.${ticket}`]);
    this.#socket = socket;
    this.#watch(OPEN_MAX_MS, () => socket.close());
    socket.onopen = () => this.#opened();
    socket.onmessage = (event) => this.#heard(event.data);
    socket.onclose = () => {
      if (this.#socket !== socket) return;
      this.#socket = undefined;
      const { kind } = this.#standing;
      this.#lost(kind === "live" ? this.surroundings.now() : since);
    };
  }

  #opened(): void {
    this.#stand({ kind: "live", since: this.surroundings.now() });
    this.#listen();
    for (const subscription of this.#subscriptions.values()) {
      subscription.sub = this.#tag();
      this.#ask(subscription);
    }
  }

  #lost(since: number): void {
    if (this.#standing.kind === "idle") return;
    this.#cancelWatch?.();
    const wasLive = this.#standing.kind === "live";
    this.#stand({ kind: "away", since });
    if (wasLive) for (const { sink } of this.#subscriptions.values()) sink.dropped();
    this.#cancelRetry = this.surroundings.after(this.#delay(), () => this.#dial(since));
  }

  #delay(): number {
    const delay = retryDelay(this.#attempt, () => this.surroundings.random());
    this.#attempt += 1;
    return delay;
  }

  /** Asks when it is quiet for long; a socket that does not answer either is dead whatever it claims. */
  #listen(): void {
    this.#watch(QUIET_MAX_MS, () => {
      this.#send({ type: "ping" });
      this.#watch(PONG_MAX_MS, () => this.#giveUp());
    });
  }

  /** A dead network may never report the close, so nobody waits for it. */
  #giveUp(): void {
    this.#leave();
    this.#lost(this.surroundings.now());
  }

  #leave(): void {
    this.#cancelRetry?.();
    this.#cancelRetry = undefined;
    this.#cancelWatch?.();
    const socket = this.#socket;
    this.#socket = undefined;
    if (socket) {
      socket.onmessage = null;
      socket.onclose = null;
      socket.close();
    }
  }

  #watch(delay_ms: number, run: () => void): void {
    this.#cancelWatch?.();
    this.#cancelWatch = this.surroundings.after(delay_ms, run);
  }

  #heard(data: unknown): void {
    this.#listen();
    const frame = read(data);
    if (frame) this.#take(frame);
  }

  #take(frame: Frame): void {
    switch (frame.type) {
      case "message": {
        const subscription = this.#current(frame.conversation, frame.sub);
        if (!subscription) return;
        subscription.sink.message(frame);
        subscription.cursor = frame.cursor;
        return;
      }
      case "subscribed": {
        const subscription = this.#current(frame.conversation_id, frame.sub);
        if (!subscription) return;
        subscription.cursor = frame.cursor;
        // Only now: a server that lets in and turns away at once must not be asked without pause.
        this.#attempt = 0;
        subscription.sink.caughtUp(frame.cursor);
        return;
      }
      case "reset":
        this.#end(this.#current(frame.conversation_id, frame.sub));
        return;
      case "error":
        if (frame.conversation_id) this.#refused(frame.conversation_id, frame.sub, frame.code);
        return;
      case "escalations":
        this.listener.escalations(frame.escalations);
        return;
      case "input_requested":
        this.listener.raised(frame);
        return;
      case "escalation_cleared":
        this.listener.cleared(frame);
        return;
      case "pong":
        this.#attempt = 0;
        return;
    }
  }

  /** The subscription a frame belongs to; none when the frame's tag is of an earlier one. */
  #current(conversation: string, sub: string | null | undefined): Subscription | undefined {
    const subscription = this.#subscriptions.get(conversation);
    return subscription?.sub === sub ? subscription : undefined;
  }

  #refused(conversation: string, sub: string | null | undefined, code: string): void {
    const subscription = this.#current(conversation, sub);
    if (code === "invalid_cursor" || code === "cursor_expired") {
      this.#end(subscription);
    } else if (subscription) {
      // The place is still good, the broker only cannot serve it now.
      this.surroundings.after(this.#delay(), () => {
        if (this.#standing.kind === "live" && this.#current(conversation, sub)) this.#ask(subscription);
      });
    }
  }

  #end(subscription: Subscription | undefined): void {
    if (!subscription) return;
    this.#subscriptions.delete(subscription.conversation);
    subscription.sink.expired();
  }

  #ask({ conversation, cursor, sub }: Subscription): void {
    this.#send({ type: "subscribe", conversation_id: conversation, since_cursor: cursor, sub });
  }

  #send(frame: unknown): void {
    this.#socket?.send(JSON.stringify(frame));
  }

  #tag(): string {
    this.#tags += 1;
    return String(this.#tags);
  }

  #stand(standing: Standing): void {
    this.#standing = standing;
    this.listener.standing(standing);
  }
}

/** A frame, or nothing when it is none. */
function read(data: unknown): Frame | undefined {
  if (typeof data !== "string") return undefined;
  try {
    const value: unknown = JSON.parse(data);
    return typeof value === "object" && value !== null ? (value as Frame) : undefined;
  } catch {
    return undefined;
  }
}
