/** The bar: explain any id, whether this is live, how times and colours are shown. */

import { awaySince, standing } from "../state/broker";
import { minute } from "../state/pulse";
import { go, route } from "../state/route";
import { clockTimes, flipTheme, theme } from "../state/settings";
import { newestAt } from "../state/talks";
import { clock, instant } from "../text/time";
import { helpOpen } from "./help";
import { icons } from "./icons";
import { SHORT } from "./rail";

export function Bar() {
  return (
    <header class="bar">
      <p class="ptitle" aria-hidden="true">
        {SHORT[route.value.view]}
      </p>
      <Ask />
      <div class="facts">
        <Live />
        <button type="button" class="hide-p" title="Switch times (.)" onClick={() => (clockTimes.value = !clockTimes.value)}>
          {clockTimes.value ? "Clock times" : "Relative times"}
        </button>
        <button type="button" title="Light or dark (t)" onClick={flipTheme}>
          <span class="vh">Colours: </span>
          {theme.value === "dark" ? "Dark" : "Light"}
        </button>
        <button type="button" title="Keys and receipts (?)" aria-label="Keys and receipts" onClick={() => (helpOpen.value = true)}>
          {icons.help}
        </button>
      </div>
    </header>
  );
}

export function Ask({ phone = false }: { phone?: boolean }) {
  return (
    <form
      class={`ask ${phone ? "only-p" : ""}`}
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        const input = event.currentTarget.querySelector("input");
        const id = input?.value.trim() ?? "";
        if (id !== "") go("explain", id);
        input?.blur();
      }}
    >
      {icons.search}
      <input name="id" placeholder="Paste any id: where is it, and why?" aria-label="Explain any id" autocomplete="off" spellcheck={false} />
      {phone ? null : <kbd>/</kbd>}
    </form>
  );
}

function Live() {
  const { kind } = standing.value;
  const live = kind === "live";
  const word = live ? "Live" : kind === "away" ? "Away" : "Connecting";
  return (
    <span class="now">
      <span class={`live ${live ? "" : "off"}`} />
      <span id="standing">{word}</span>
      <span class="dim hide-p hide-m">{fact()}</span>
    </span>
  );
}

function fact(): string {
  const since = awaySince.value;
  if (since !== undefined) return `as of ${clock(since, minute.value, "seconds")}`;
  const newest = newestAt.value;
  return newest === undefined ? "no rows yet" : `newest row ${clock(instant(newest), minute.value, "seconds")}`;
}
