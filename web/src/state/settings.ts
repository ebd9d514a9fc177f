/** What a reader chose, kept in this browser. */

import { effect, signal } from "@preact/signals";

export type Theme = "light" | "dark";

const KEY = "postrider";
type Kept = { theme?: Theme; clock?: boolean; keys?: boolean };
const kept: Kept = read();
const dark = matchMedia("(prefers-color-scheme: dark)");

export const theme = signal<Theme>(kept.theme ?? (dark.matches ? "dark" : "light"));
/** Whether ages are shown as clock times. */
export const clockTimes = signal(kept.clock ?? false);
/** Whether single keys do something (WCAG 2.1.4). */
export const singleKeys = signal(kept.keys ?? true);

const chosen = signal(kept.theme !== undefined);

export function flipTheme(): void {
  chosen.value = true;
  theme.value = theme.value === "dark" ? "light" : "dark";
}

/** Shows the theme and keeps choices. */
export function startSettings(): void {
  dark.addEventListener("change", () => {
    if (!chosen.value) theme.value = dark.matches ? "dark" : "light";
  });
  effect(() => {
    document.documentElement.dataset["theme"] = theme.value;
  });
  effect(() => {
    const now: Kept = { clock: clockTimes.value, keys: singleKeys.value };
    if (chosen.value) now.theme = theme.value;
    try {
      localStorage.setItem(KEY, JSON.stringify(now));
    } catch {
      // A browser that keeps nothing still shows everything.
    }
  });
}

function read(): Kept {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? "{}") as Kept;
  } catch {
    return {};
  }
}
