/** Where to write. Away, a text stays in this tab and nothing claims otherwise. */

import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Message } from "../client";
import { awaySince } from "../state/broker";
import { names } from "../state/members";
import { waiting } from "../state/talks";
import { follow, thread, typed } from "../state/thread";
import { mentioned } from "../text/mentions";
import { type Suggestion, completed, suggest } from "../text/suggest";
import { firstLine } from "../text/visible";
import { icons } from "./icons";

/** The message the next one answers. */
const answering = signal<Message | undefined>(undefined);

export function replyTo(message: Message): void {
  answering.value = message;
  document.querySelector<HTMLTextAreaElement>(".compose textarea")?.focus();
}

export function Compose({ id, name, closed }: { id: string; name: string; closed: boolean }) {
  const field = useRef<HTMLTextAreaElement>(null);
  const [offered, setOffered] = useState<(Suggestion & { at: number }) | undefined>(undefined);
  const away = awaySince.value !== undefined;
  const asked = waiting.value.get(id);
  const answers = answering.value?.conversation === id ? answering.value : undefined;
  useEffect(() => {
    answering.value = undefined;
    if (field.current) {
      field.current.value = typed.get(id) ?? "";
      fit(field.current);
    }
  }, [id]);
  if (closed) {
    return (
      <div class="compose">
        <p class="dim">This conversation is closed; it takes no messages.</p>
      </div>
    );
  }
  const send = () => {
    const body = field.current?.value ?? "";
    if (away || body.trim() === "" || !field.current) return;
    thread.value?.send({ body, mentions: mentioned(body, names.value), reply_to: answers?.id });
    field.current.value = "";
    typed.delete(id);
    setOffered(undefined);
    answering.value = undefined;
    fit(field.current);
    follow(true);
  };
  const look = (text: HTMLTextAreaElement) => {
    const next = suggest(text.value, text.selectionStart, names.value);
    setOffered(next && { ...next, at: 0 });
  };
  const take = (name: string) => {
    const text = field.current;
    if (!text || !offered) return;
    const next = completed(text.value, text.selectionStart, offered, name);
    text.value = next.text;
    text.setSelectionRange(next.caret, next.caret);
    typed.set(id, next.text);
    setOffered(undefined);
    text.focus();
  };
  /** True when the key was meant for the list of names. */
  const choose = (key: string): boolean => {
    if (!offered) return false;
    const { length } = offered.names;
    if (key === "ArrowDown") setOffered({ ...offered, at: (offered.at + 1) % length });
    else if (key === "ArrowUp") setOffered({ ...offered, at: (offered.at + length - 1) % length });
    else if (key === "Enter" || key === "Tab") take(offered.names[offered.at] ?? "");
    else if (key === "Escape") setOffered(undefined);
    else return false;
    return true;
  };
  const verb = asked ? "Answer" : "Send";
  return (
    <div class="compose">
      {answers ? (
        <p class="answers">
          <span class="ell">
            reply to {answers.sender} <bdi>“{firstLine(answers.body, 80)}”</bdi>
          </span>
          <button type="button" class="cp" aria-label="Not a reply" onClick={() => (answering.value = undefined)}>
            {icons.close}
          </button>
        </p>
      ) : null}
      {offered ? <Names offered={offered} take={take} /> : null}
      <div class="box">
        <textarea
          ref={field}
          rows={1}
          aria-label={`Message ${name}`}
          aria-autocomplete="list"
          aria-controls={offered ? "names" : undefined}
          aria-activedescendant={offered ? `name-${offered.at}` : undefined}
          placeholder={away ? "Away: a draft stays in this tab" : asked ? `Answer ${asked.sender}` : `Message ${name}`}
          onInput={(event) => {
            typed.set(id, event.currentTarget.value);
            fit(event.currentTarget);
            look(event.currentTarget);
          }}
          onBlur={() => setOffered(undefined)}
          onKeyDown={(event) => {
            if (!event.isComposing && choose(event.key)) {
              event.preventDefault();
              event.stopPropagation();
              return;
            }
            if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
            event.preventDefault();
            send();
          }}
        />
        <button type="button" class="btn main" disabled={away} onClick={send}>
          {away ? "Away" : verb}
        </button>
      </div>
      <p class="hint">
        <span>
          <kbd>Enter</kbd> {asked ? "answer and clear the dot" : "send"}
        </span>
        <span>
          <kbd>Shift</kbd> <kbd>Enter</kbd> new line
        </span>
        <span>{away ? "Not stored yet: only in this tab" : "Markdown, @name mentions"}</span>
      </p>
    </div>
  );
}

function Names({ offered, take }: { offered: Suggestion & { at: number }; take: (name: string) => void }) {
  return (
    <ul class="names" id="names" role="listbox" aria-label="Members">
      {offered.names.map((name, place) => (
        <li
          key={name}
          id={`name-${place}`}
          role="option"
          aria-selected={place === offered.at}
          onPointerDown={(event) => {
            // Before the field loses its focus, and with it the list.
            event.preventDefault();
            take(name);
          }}
        >
          @{name}
        </li>
      ))}
    </ul>
  );
}

/** As high as its text, up to the bound the style sheet sets. */
function fit(field: HTMLTextAreaElement): void {
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight}px`;
}
