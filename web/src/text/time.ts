/** Instants for people. */

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Microseconds are more than a browser's clock knows; milliseconds are kept. */
export function instant(text: string): number {
  return Date.parse(text);
}

/** `now`, `4 min`, `2 h`, `2 d`. */
export function age(at: number, now: number): string {
  const past = Math.max(0, now - at);
  if (past < MINUTE) return "now";
  if (past < HOUR) return `${Math.floor(past / MINUTE)} min`;
  if (past < DAY) return `${Math.floor(past / HOUR)} h`;
  return `${Math.floor(past / DAY)} d`;
}

/** Clock time, with the day if it is not today's. */
export function clock(at: number, now: number, form: "minutes" | "seconds" | "milliseconds"): string {
  const date = new Date(at);
  const two = (n: number) => String(n).padStart(2, "0");
  let text = `${two(date.getHours())}:${two(date.getMinutes())}`;
  if (form !== "minutes") text += `:${two(date.getSeconds())}`;
  if (form === "milliseconds") text += `.${String(date.getMilliseconds()).padStart(3, "0")}`;
  return sameDay(at, now) ? text : `${shortDay(date, new Date(now))} ${text}`;
}

/** `Sunday 15 November` */
export function day(at: number): string {
  return new Date(at).toLocaleDateString("en-GB", { weekday: "long", day: "numeric", month: "long" });
}

export function sameDay(a: number, b: number): boolean {
  return new Date(a).toDateString() === new Date(b).toDateString();
}

/** Time between two instants: `26 ms`, `38.4 s`, `4 min`. */
export function span(ms: number): string {
  const length = Math.max(0, ms);
  if (length < 1_000) return `${Math.round(length)} ms`;
  if (length < MINUTE) return `${(length / 1_000).toFixed(1)} s`;
  return age(0, length);
}

function shortDay(date: Date, now: Date): string {
  const year = date.getFullYear() === now.getFullYear() ? {} : ({ year: "numeric" } as const);
  return date.toLocaleDateString("en-GB", { day: "numeric", month: "short", ...year });
}
