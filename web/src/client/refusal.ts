/** The two ways a call does not succeed. */

/** The other side answered no. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly more: Readonly<Record<string, unknown>> = {},
  ) {
    super(message);
  }

  /** Whether the same request, with the same id, may be answered otherwise later. */
  get transient(): boolean {
    return this.status >= 500 || this.status === 429 || this.status === 408;
  }

  /** How long the other side asks to be left alone. */
  get retry_after_ms(): number {
    const wait = this.more["retry_after_ms"];
    return typeof wait === "number" && wait > 0 ? Math.min(wait, 60_000) : 0;
  }
}

/** No answer came. Whether the request arrived is unknown, so only the same id may be tried again. */
export class Away extends Error {
  constructor() {
    super("no answer came");
  }
}
