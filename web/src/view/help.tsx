/** Receipts and keys on one sheet. */

import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { me, signOut } from "../state/broker";
import { singleKeys } from "../state/settings";
import { ENDINGS, RUNGS, SENTENCE } from "../text/words";
import { icons } from "./icons";
import { Ladder } from "./ladder";

export const helpOpen = signal(false);

const KEYS: Array<[string, string[]]> = [
  ["Explain an id", ["/"]],
  ["Go to a view", ["g", "then", "c", "a", "o", "x", "e", "h"]],
  ["Next, previous", ["j", "k"]],
  ["Open, close", ["Enter", "Esc"]],
  ["Requeue the open row", ["r"]],
  ["Decide a conflict", ["1", "2", "3"]],
  ["Copy the id", ["y"]],
  ["Relative or clock times", ["."]],
  ["Light or dark", ["t"]],
  ["This sheet", ["?"]],
];

export function Help() {
  const sheet = useRef<HTMLDialogElement>(null);
  const open = helpOpen.value;
  useEffect(() => {
    if (open) sheet.current?.showModal();
    else sheet.current?.close();
  }, [open]);
  if (!open) return null;
  return (
    <dialog ref={sheet} aria-labelledby="help-title" onClose={() => (helpOpen.value = false)}>
      <div class="head">
        <h2 id="help-title">Receipts and keys</h2>
        <div class="r">
          <button type="button" class="cp" aria-label="Close" onClick={() => (helpOpen.value = false)}>
            {icons.close}
          </button>
        </div>
      </div>
      <div class="sheet">
        <p class="mid">A receipt is what is durably true now. One bar for this host, one for the broker, four for the recipient.</p>
        <Legend />
        <div class="keys">
          {KEYS.map(([what, keys]) => (
            <div key={what}>
              {what}
              <span>{keys.map((key) => (key === "then" ? " then " : <kbd key={key}>{key}</kbd>))}</span>
            </div>
          ))}
        </div>
        <label class="switch">
          <input type="checkbox" checked={singleKeys.value} onChange={(event) => (singleKeys.value = event.currentTarget.checked)} />
          Single keys do something outside of fields
        </label>
        <p class="switch">
          Signed in as {me.value} in this browser.
          <button
            type="button"
            class="btn low"
            onClick={() => {
              helpOpen.value = false;
              void signOut();
            }}
          >
            Sign out
          </button>
        </p>
      </div>
    </dialog>
  );
}

function Legend() {
  return (
    <>
      {RUNGS.map((rung) => (
        <div class="key" key={rung}>
          <Ladder rung={rung} />
          <p>{SENTENCE[rung]}</p>
        </div>
      ))}
      {ENDINGS.map((ending) => (
        <div class="key" key={ending}>
          <Ladder rung={ending === "expired" ? "accepted" : "queued"} ending={ending} />
          <p>{SENTENCE[ending]}</p>
        </div>
      ))}
      <div class="key">
        <Ladder rung="none" />
        <p>Only in this tab. Closing it loses it.</p>
      </div>
      <div class="key">
        <Ladder rung="accepted" part={0.6} note="in 3 of 5 inboxes" />
        <p>Several recipients: the word is the rung all have reached.</p>
      </div>
    </>
  );
}
