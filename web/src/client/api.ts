/** HTTP as the page uses it: typed answers, typed refusals, one place that knows addresses. */

import { Away, Refusal } from "./refusal";
import type { Surroundings } from "./surroundings";

/** Longer than any healthy answer; after it the outcome is unknown and the same id is tried again. */
const ANSWER_MAX_MS = 10_000;

export class Api {
  constructor(private readonly surroundings: Surroundings) {}

  get<T>(path: string): Promise<T> {
    return this.#call<T>("GET", path, undefined);
  }

  post<T>(path: string, body: unknown): Promise<T> {
    return this.#call<T>("POST", path, body);
  }

  delete<T>(path: string): Promise<T> {
    return this.#call<T>("DELETE", path, undefined);
  }

  async #call<T>(method: string, path: string, body: unknown): Promise<T> {
    const init: RequestInit = { method, signal: AbortSignal.timeout(ANSWER_MAX_MS), credentials: "same-origin", cache: "no-store" };
    if (body !== undefined) {
      init.headers = { "content-type": "application/json" };
      init.body = JSON.stringify(body);
    }
    let response: Response;
    let text: string;
    try {
      response = await this.surroundings.fetch(path, init);
      text = await response.text();
    } catch {
      throw new Away();
    }
    if (response.ok) {
      if (text === "") return undefined as T;
      try {
        return JSON.parse(text) as T;
      } catch {
        return text as T;
      }
    }
    throw refusal(response.status, text);
  }
}

function refusal(status: number, text: string): Refusal {
  try {
    const { error, message, ...more } = JSON.parse(text) as Record<string, unknown>;
    if (typeof error === "string") {
      return new Refusal(status, error, typeof message === "string" ? message : error, more);
    }
  } catch {
    // Not ours: something between us and the broker answered.
  }
  return new Refusal(status, "unreadable_answer", `The answer was ${status} without a reason.`);
}

/** A conversation's address; ids come from the broker and are escaped all the same. */
export const address = {
  conversations: (limit: number) => `/v1/conversations?limit=${limit}`,
  conversation(id: string, limit: number, before?: string) {
    const page = `/v1/conversations/${encodeURIComponent(id)}?limit=${limit}`;
    return before === undefined ? page : `${page}&before=${encodeURIComponent(before)}`;
  },
  messages: (id: string) => `/v1/conversations/${encodeURIComponent(id)}/messages`,
  read: (id: string) => `/v1/conversations/${encodeURIComponent(id)}/read`,
  members: "/v1/members",
  explain: (id: string) => `/v1/explain/${encodeURIComponent(id)}`,
  session: "/v1/session",
  tickets: "/v1/tickets",
  subscribe: "/v1/subscribe",
};
