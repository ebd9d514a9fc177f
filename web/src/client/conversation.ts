/**
 * One open conversation: reads the newest page, follows from that page's cursor, sends.
 *
 * - First the page, then the subscription at the cursor of the same read; catch-up and live rows take one path.
 * - `invalid_cursor`, `cursor_expired` and `reset` drop the view and start again with the page.
 * - A send is repeated under its first id until somebody says yes or no; no answer is no reason for a new id, and
 *   leaving the conversation is no reason to stop.
 * - What was sent is handed over one after another: words typed in an order are stored in it.
 */

import { type Api, address } from "./api";
import { retryDelay } from "./backoff";
import type { Connection, Sink } from "./connection";
import type { Message, MessageFrame } from "./frames";
import * as log from "./log";
import { Refusal } from "./refusal";
import type { Surroundings } from "./surroundings";
import type { AcceptAnswer, Page } from "./types";
import { ulid } from "./ulid";

/** Rows of a page; a screen shows some twenty. */
export const PAGE_ROWS = 100;

export type Phase =
  | { kind: "reading" }
  | { kind: "shown" }
  | { kind: "refused"; code: string; message: string }
  /** So many rows came behind a reader who looks at old ones that following was ended. */
  | { kind: "detached" };

export interface View {
  phase: Phase;
  log: log.Log;
}

/** What a sender may say beside the text. */
export interface Words {
  body: string;
  mentions?: readonly string[];
  reply_to?: string | undefined;
}

export class Conversation implements Sink {
  #view: View = { phase: { kind: "reading" }, log: log.EMPTY };
  #arrived: Message[] = [];
  #flushing = false;
  #left = false;
  #reads = 0;
  #dropped_at: number | undefined;
  #caughtUp = 0;
  #reading_back = false;
  /** The draft that is being handed over; the others wait behind it. */
  #posting: string | undefined;
  /** Whether the reader looks at the newest rows; only then may old ones be let go. */
  follows = true;

  constructor(
    readonly id: string,
    private readonly me: string,
    private readonly api: Api,
    private readonly connection: Connection,
    private readonly surroundings: Surroundings,
    private readonly changed: (view: View) => void,
  ) {}

  get view(): View {
    return this.#view;
  }

  /** Reads the newest page, then follows. Asked again, or after it was left, it starts over. */
  async open(): Promise<void> {
    this.#left = false;
    this.connection.unsubscribe(this.id);
    this.#reads += 1;
    const read = this.#reads;
    this.#arrived = [];
    this.#dropped_at = undefined;
    this.#show({ kind: "reading" });
    for (let attempt = 0; ; attempt += 1) {
      try {
        const page = await this.api.get<Page>(address.conversation(this.id, PAGE_ROWS));
        if (this.#left || read !== this.#reads) return;
        this.#set({ phase: { kind: "shown" }, log: log.opened(this.#view.log, page, this.me) });
        this.connection.subscribe(this.id, page.cursor, this);
        return;
      } catch (error) {
        if (this.#left || read !== this.#reads) return;
        if (error instanceof Refusal && !error.transient) {
          this.#show({ kind: "refused", code: error.code, message: error.message });
          return;
        }
        await this.#pause(attempt, error);
      }
    }
  }

  /** One page further back; false when there is none or one is on its way. */
  async older(): Promise<boolean> {
    const { has_more, before, rows } = this.#view.log;
    if (!has_more || this.#reading_back || rows.length >= log.ROWS_MAX) return false;
    this.#reading_back = true;
    const read = this.#reads;
    try {
      const page = await this.api.get<Page>(address.conversation(this.id, PAGE_ROWS, before));
      // A cut or a fresh start moved the place this page would join.
      if (this.#left || read !== this.#reads || this.#view.log.before !== before) return false;
      this.#set({ ...this.#view, log: log.older(this.#view.log, page) });
      return true;
    } catch (error) {
      if (error instanceof Refusal && error.status === 410) void this.open();
      return false;
    } finally {
      this.#reading_back = false;
    }
  }

  /** Shows the words at once and hands them over; answers with the id they go under. */
  send(words: Words): string {
    const now = this.surroundings.now();
    const client_message_id = ulid(now);
    const draft: log.Draft = {
      client_message_id,
      body: words.body,
      mentions: words.mentions ?? [],
      reply_to: words.reply_to,
      asked_at: now,
      state: { kind: "sending", attempts: 0 },
    };
    this.#set({ ...this.#view, log: log.drafted(this.#view.log, draft) });
    return client_message_id;
  }

  /** Tries a refused draft again, under the id it had. */
  resend(client_message_id: string): void {
    if (this.#draft(client_message_id)?.state.kind !== "refused") return;
    this.#move(client_message_id, { kind: "sending", attempts: 0 });
  }

  /** Takes a refused draft off the screen. */
  discard(client_message_id: string): void {
    if (this.#draft(client_message_id)?.state.kind !== "refused") return;
    this.#set({ ...this.#view, log: log.discarded(this.#view.log, client_message_id) });
  }

  /** Stops following. What was sent is handed over all the same, and is shown when it is opened again. */
  leave(): void {
    this.#left = true;
    this.connection.unsubscribe(this.id);
  }

  /** Whether something sent has no answer yet. */
  get unanswered(): boolean {
    return this.#view.log.drafts.some((draft) => draft.state.kind !== "accepted");
  }

  message(frame: MessageFrame): void {
    this.#arrived.push(frame);
    if (this.#dropped_at !== undefined) this.#caughtUp += 1;
    if (this.#flushing) return;
    this.#flushing = true;
    this.surroundings.soon(() => this.#flush());
  }

  caughtUp(): void {
    this.#flush();
    if (this.#dropped_at === undefined) return;
    const back = log.resumed(this.#view.log, this.#dropped_at, this.surroundings.now(), this.#caughtUp);
    this.#dropped_at = undefined;
    this.#set({ ...this.#view, log: back });
  }

  dropped(): void {
    this.#flush();
    this.#dropped_at ??= this.surroundings.now();
    this.#caughtUp = 0;
  }

  expired(): void {
    if (!this.#left) void this.open();
  }

  /** Rows of one drawing together: a thousand a second must not mean a thousand drawings. */
  #flush(): void {
    this.#flushing = false;
    if (this.#left || this.#arrived.length === 0) return;
    const arrived = this.#arrived;
    this.#arrived = [];
    const all = log.received(this.#view.log, arrived, this.me);
    if (this.follows) this.#set({ ...this.#view, log: log.trimmed(all) });
    else if (all.rows.length <= log.ROWS_MAX) this.#set({ ...this.#view, log: all });
    else {
      this.connection.unsubscribe(this.id);
      this.#set({ phase: { kind: "detached" }, log: all });
    }
  }

  /** Hands over the first draft that has no answer; called whenever the drafts changed. */
  #pump(): void {
    const next = this.#view.log.drafts.find((draft) => draft.state.kind === "sending");
    if (next?.client_message_id === this.#posting) return;
    this.#posting = next?.client_message_id;
    if (next) this.#post(next, 0);
  }

  #post(draft: log.Draft, attempt: number): void {
    const { client_message_id } = draft;
    this.#move(client_message_id, { kind: "sending", attempts: attempt + 1 });
    const { body, mentions, reply_to } = draft;
    const request = {
      body,
      client_message_id,
      ...(mentions.length > 0 ? { mentions } : {}),
      ...(reply_to === undefined ? {} : { reply_to }),
    };
    this.api.post<AcceptAnswer>(address.messages(this.id), request).then(
      (answer) => this.#move(client_message_id, { kind: "accepted", answer }),
      (error: unknown) => this.#again(draft, attempt, error),
    );
  }

  #again(draft: log.Draft, attempt: number, error: unknown): void {
    const { client_message_id } = draft;
    // Its row came meanwhile: the broker has it, whatever became of the answer.
    if (this.#draft(client_message_id) === undefined) return;
    if (error instanceof Refusal && !error.transient) {
      this.#move(client_message_id, { kind: "refused", code: error.code, message: error.message });
      return;
    }
    this.surroundings.after(this.#delay(attempt, error), () => {
      if (this.#draft(client_message_id) !== undefined) this.#post(draft, attempt + 1);
    });
  }

  #pause(attempt: number, error: unknown): Promise<void> {
    return new Promise((done) => this.surroundings.after(this.#delay(attempt, error), done));
  }

  #delay(attempt: number, error: unknown): number {
    const wished = error instanceof Refusal ? error.retry_after_ms : 0;
    return Math.max(wished, retryDelay(attempt, () => this.surroundings.random()));
  }

  #draft(client_message_id: string): log.Draft | undefined {
    return this.#view.log.drafts.find((draft) => draft.client_message_id === client_message_id);
  }

  #move(client_message_id: string, state: log.DraftState): void {
    this.#set({ ...this.#view, log: log.moved(this.#view.log, client_message_id, state) });
  }

  #show(phase: Phase): void {
    this.#set({ ...this.#view, phase });
  }

  #set(view: View): void {
    this.#view = view;
    if (!this.#left) this.changed(view);
    this.#pump();
  }
}
