/** How long to wait before the next try. */

/** The first wait. */
export const RETRY_FIRST_MS = 300;
/** The longest wait: whoever looks at the page should not wait longer for a broker that is back. */
export const RETRY_MAX_MS = 10_000;

/** Doubling waits, each shortened by up to half, so that many clients of one broker do not return at once. */
export function retryDelay(attempt: number, random: () => number): number {
  const full = Math.min(RETRY_MAX_MS, RETRY_FIRST_MS * 2 ** Math.min(attempt, 16));
  return full / 2 + (full / 2) * random();
}
