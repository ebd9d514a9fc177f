/** View and selection live in the address, so that a link shows what its sender sees. */

import { signal } from "@preact/signals";

export const VIEWS = ["conversations", "agents", "outbox", "conflicts", "explain", "health"] as const;
export type View = (typeof VIEWS)[number];

export interface Route {
  view: View;
  /** The conversation, the row or the id. */
  selected: string | undefined;
  /** Inside it: the message. */
  within: string | undefined;
}

export function parse(hash: string): Route {
  const [, view, selected, within] = hash.replace(/^#/, "").split("/").map(decoded);
  const known = VIEWS.find((one) => one === view) ?? "conversations";
  return { view: known, selected: selected || undefined, within: within || undefined };
}

export function link(view: View, selected?: string, within?: string): string {
  return ["#", view, selected, within].filter((part) => part !== undefined).map(encoded).join("/");
}

export const route = signal<Route>(parse(location.hash));

export function go(view: View, selected?: string, within?: string): void {
  location.hash = link(view, selected, within);
}

export function startRoute(): void {
  addEventListener("hashchange", () => {
    route.value = parse(location.hash);
  });
}

function encoded(part: string | undefined): string {
  return part === "#" ? part : encodeURIComponent(part ?? "");
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
