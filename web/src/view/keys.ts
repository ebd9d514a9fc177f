/** Keys: off inside fields, and off altogether where the reader says so. */

import { copy } from "./parts";
import { helpOpen } from "./help";
import { type View, go, link, route } from "../state/route";
import { clockTimes, flipTheme, singleKeys } from "../state/settings";

const AFTER_G: Record<string, View> = { c: "conversations", a: "agents", o: "outbox", x: "conflicts", e: "explain", h: "health" };
const STOPS = "a.conv, tr.row, article.msg";

let going = false;

export function startKeys(): void {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const field = event.target instanceof Element ? event.target.closest("input:not([type=checkbox]), textarea, select") : null;
    if (field instanceof HTMLElement) {
      if (event.key === "Escape") field.blur();
      return;
    }
    if (helpOpen.peek()) return;
    if (event.key === "Escape") back();
    else if (singleKeys.peek() && pressed(event.key)) event.preventDefault();
  });
}

/** True when the key did something. */
function pressed(key: string): boolean {
  if (going) {
    going = false;
    const view = AFTER_G[key];
    if (view) go(view);
    return view !== undefined;
  }
  switch (key) {
    case "g":
      going = true;
      return true;
    case "/":
      document.querySelector<HTMLInputElement>(".bar .ask input")?.focus();
      return true;
    case "?":
      helpOpen.value = true;
      return true;
    case "t":
      flipTheme();
      return true;
    case ".":
      clockTimes.value = !clockTimes.value;
      return true;
    case "j":
      return move(1);
    case "k":
      return move(-1);
    case "r":
      document.querySelector<HTMLButtonElement>("[data-key-r]:not([disabled])")?.click();
      return true;
    case "1":
    case "2":
    case "3":
      return press(key);
    case "y":
      return yank();
    case "Enter":
      return openFocused();
    default:
      return false;
  }
}

function move(step: 1 | -1): boolean {
  const focused = document.activeElement?.closest<HTMLElement>(STOPS);
  const kind = focused?.tagName ?? "";
  const all = [...document.querySelectorAll<HTMLElement>(STOPS)].filter((one) => one.offsetParent !== null && (kind === "" || one.tagName === kind));
  const at = focused ? all.indexOf(focused) : step > 0 ? -1 : all.length;
  const next = all[at + step];
  next?.focus();
  return next !== undefined;
}

/** Presses the button that says this key. */
function press(key: string): boolean {
  const button = document.querySelector<HTMLButtonElement>(`[data-key="${key}"]:not([disabled])`);
  button?.click();
  return button !== null;
}

function openFocused(): boolean {
  const message = document.activeElement?.closest<HTMLElement>("article.msg[data-id]");
  const { selected } = route.peek();
  if (!message || document.activeElement !== message || selected === undefined) return false;
  go("conversations", selected, message.dataset["id"]);
  return true;
}

function yank(): boolean {
  const focused = document.activeElement?.closest<HTMLElement>("[data-id], [data-row]");
  const id = focused?.dataset["id"] ?? focused?.dataset["row"] ?? route.peek().within ?? route.peek().selected;
  if (id !== undefined) copy(id);
  return id !== undefined;
}

/** Closes the innermost thing that is open; focus goes back to what opened it. */
function back(): void {
  const { view, selected, within } = route.peek();
  const opener = within ?? selected;
  if (within !== undefined) location.hash = link(view, selected);
  else if (selected !== undefined) location.hash = link(view);
  else return;
  if (opener === undefined) return;
  requestAnimationFrame(() => {
    const name = CSS.escape(opener);
    document.querySelector<HTMLElement>(`[data-id="${name}"], [data-row="${name}"], a.conv[href$="${name}"]`)?.focus();
  });
}

