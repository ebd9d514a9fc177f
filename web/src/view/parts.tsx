/** Small things every view uses. */

import type { ComponentChildren } from "preact";
import { Away, Refusal } from "../client";
import { minute } from "../state/pulse";
import { say } from "../state/say";
import { clockTimes } from "../state/settings";
import { age, clock, instant } from "../text/time";
import { icons } from "./icons";

/** An instant as an age, or as the reader chose; the other form is one hover away. */
export function Time({ at }: { at: string }) {
  const when = instant(at);
  const relative = age(when, minute.value);
  const absolute = clock(when, minute.value, "seconds");
  return (
    <time dateTime={at} title={clockTimes.value ? relative : absolute}>
      {clockTimes.value ? absolute : relative}
    </time>
  );
}

/** An instant that is always clock time: rungs, errors, messages. */
export function ClockTime({ at, form }: { at: string; form: "minutes" | "seconds" | "milliseconds" }) {
  return (
    <time dateTime={at} title={at}>
      {clock(instant(at), minute.value, form)}
    </time>
  );
}

export function copy(text: string): void {
  navigator.clipboard?.writeText(text).then(
    () => say("Copied"),
    () => say("The browser did not allow copying"),
  );
}

export function Copy({ text }: { text: string }) {
  return (
    <button type="button" class="cp" aria-label={`Copy ${text}`} title="Copy" onClick={() => copy(text)}>
      {icons.copy}
    </button>
  );
}

/** A line to paste into a terminal. */
export function Cmd({ line }: { line: string }) {
  return (
    <div class="cmd">
      <span>{line}</span>
      <Copy text={line} />
    </div>
  );
}

export function Head({ title, close, children }: { title: string; close?: string; children?: ComponentChildren }) {
  return (
    <div class="head">
      <h2 class="ell">{title}</h2>
      {children}
      {close === undefined ? null : (
        <div class="r">
          <a class="cp" href={close} aria-label="Close" data-close>
            {icons.close}
          </a>
        </div>
      )}
    </div>
  );
}

/** Still bars while something is read; nothing moves. */
export function Reading({ what }: { what: string }) {
  return (
    <div class="reading">
      <p class="dim">Reading {what}…</p>
      <div class="bone" />
      <div class="bone b2" />
      <div class="bone b3" />
    </div>
  );
}

/** What, why, what is still true, and what to do. */
export function Refused({ error, still, fix }: { error: unknown; still: string; fix?: string }) {
  return (
    <div class="note" role="alert">
      <h2>{error instanceof Away ? "No answer" : "Refused"}</h2>
      <p>{sentence(error)}</p>
      <p>{still}</p>
      {fix === undefined ? null : <Cmd line={fix} />}
    </div>
  );
}

export function sentence(error: unknown): string {
  if (error instanceof Away) return "The broker did not answer.";
  if (error instanceof Refusal) return `${error.message} (${error.code})`;
  return String(error);
}

export function Facts({ of }: { of: Array<[string, ComponentChildren, string?]> }) {
  return (
    <dl class="kv">
      {of.map(([name, value, text]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd class={text === undefined ? "" : "mono"}>
            <span class="ell">{value}</span>
            {text === undefined ? null : <Copy text={text} />}
          </dd>
        </div>
      ))}
    </dl>
  );
}
