/** The first message to somebody, or to a topic. */

import { useRef, useState } from "preact/hooks";
import { type AcceptAnswer, Away, Refusal, ulid } from "../client";
import { api, awaySince, session } from "../state/broker";
import { names } from "../state/members";
import { go, link } from "../state/route";
import { lookAtTalks } from "../state/talks";
import { mentioned } from "../text/mentions";
import { icons } from "./icons";
import { sentence } from "./parts";

export function NewTalk() {
  const [problem, setProblem] = useState<string | undefined>(undefined);
  const [busy, setBusy] = useState(false);
  // One id for one text: pressing the button again after no answer asks about the same message.
  const asked = useRef({ text: "", id: "" });
  const send = async (form: HTMLFormElement) => {
    const fields = new FormData(form);
    const to = destination(String(fields.get("to") ?? "").trim());
    const body = String(fields.get("body") ?? "");
    if (to === "" || body.trim() === "") return;
    const text = `${to}\n${body}`;
    if (asked.current.text !== text) asked.current = { text, id: ulid(Date.now()) };
    setBusy(true);
    try {
      const accepted = await post(to, body, asked.current.id);
      await lookAtTalks();
      go("conversations", accepted.conversation);
    } catch (error) {
      setProblem(`${sentence(error)} ${error instanceof Refusal ? "Nothing was stored." : "Press Send again: the same message, never two."}`);
    } finally {
      setBusy(false);
    }
  };
  return (
    <section class="pane thread" aria-label="New message">
      <div class="head">
        <a class="back" href={link("conversations")} aria-label="Back">
          {icons.back}
        </a>
        <h2>New message</h2>
      </div>
      <form
        class="wide"
        onSubmit={(event) => {
          event.preventDefault();
          void send(event.currentTarget);
        }}
      >
        <label class="field">
          To
          <input name="to" list="known" placeholder="@name or #topic" autocomplete="off" spellcheck={false} required />
        </label>
        <datalist id="known">
          {[...names.value].map((name) => (
            <option key={name} value={`@${name}`} />
          ))}
        </datalist>
        <label class="field">
          Message
          <textarea name="body" rows={5} required />
        </label>
        {problem === undefined ? null : <p role="alert">{problem}</p>}
        <button type="submit" class="btn main" disabled={busy || awaySince.value !== undefined}>
          {awaySince.value === undefined ? "Send" : "Away"}
        </button>
      </form>
    </section>
  );
}

async function post(to: string, body: string, client_message_id: string): Promise<AcceptAnswer> {
  const now = session.peek();
  if (now.kind !== "in") throw new Away();
  const mentions = mentioned(body, names.peek());
  const request = { to, body, client_message_id, ...(mentions.length > 0 ? { mentions } : {}) };
  return api.post<AcceptAnswer>(`/v1/meshes/${encodeURIComponent(now.who.mesh.slug)}/messages`, request);
}

/** People write names; the wire wants a sigil. */
function destination(text: string): string {
  return text === "" || text.startsWith("#") || text.startsWith("@") ? text : `@${text}`;
}
