/** Conversations: the list, the thread, the receipt of the message that is open. */

import { useEffect } from "preact/hooks";
import type { ConversationRow } from "../client";
import { me } from "../state/broker";
import { link, route } from "../state/route";
import { ordered, previews, talks, waiting } from "../state/talks";
import { openThread } from "../state/thread";
import { firstLine } from "../text/visible";
import { conversationName } from "../text/words";
import { NewTalk } from "./new_talk";
import { Cmd, Reading, Time } from "./parts";
import { Receipt } from "./receipt";
import { Thread } from "./thread";

export function Talks() {
  const { selected, within } = route.value;
  useEffect(() => {
    openThread(selected === "new" ? undefined : selected);
  }, [selected]);
  // Rows that come while another view is shown were not read.
  useEffect(() => () => openThread(undefined), []);
  if (talks.value === undefined) return <Reading what="the list" />;
  if (talks.value.length === 0 && selected === undefined) return <Nothing />;
  return (
    <>
      <section class="pane list" aria-label="Conversations">
        <div class="head">
          <h2>Conversations</h2>
          <div class="r">
            <a class="btn low" href={link("conversations", "new")}>
              New
            </a>
          </div>
        </div>
        <div class="scroll">
          {ordered.value.map((row) => (
            <Talk key={row.conversation} row={row} />
          ))}
        </div>
      </section>
      {selected === "new" ? <NewTalk /> : selected === undefined ? <Choose /> : <Thread id={selected} />}
      {selected !== undefined && within !== undefined ? <Receipt id={within} close={link("conversations", selected)} /> : null}
    </>
  );
}

function Talk({ row }: { row: ConversationRow }) {
  const asks = waiting.value.get(row.conversation);
  const newest = previews.value.get(row.conversation);
  const current = route.value.selected === row.conversation;
  const unread = row.unread ?? 0;
  return (
    <a class="conv" href={link("conversations", row.conversation)} aria-current={current ? "true" : undefined}>
      <span>{asks ? <span class="dot" /> : null}</span>
      <span class="t ell">
        {conversationName(row.conversation_name)} {asks ? <span class="a">{row.kind === "dm" ? "" : `${asks.sender} `}asks you</span> : null}
      </span>
      <span>
        {row.last_at ? <Time at={row.last_at} /> : null}
        {unread > 0 && !current ? (
          <span class="u">
            {unread > 999 ? "999+" : unread}
            <span class="vh"> unread</span>
          </span>
        ) : null}
      </span>
      <span class="s ell">
        {row.state === "active" ? null : <span class="dim">{row.state} · </span>}
        {newest && !(row.kind === "dm" && newest.sender !== me.value) ? <b>{newest.sender === me.value ? "you" : newest.sender}: </b> : null}
        <bdi>{newest ? firstLine(newest.body) : ""}</bdi>
      </span>
    </a>
  );
}

function Nothing() {
  return (
    <div class="note">
      <h2>No conversations yet</h2>
      <p>This mesh is new and open: the first message to a topic makes the topic. One of these in a terminal appears here by itself.</p>
      <Cmd line={'postrider send me "hello"'} />
      <Cmd line={'postrider send topic:alerts "build done"'} />
      <p>
        Or <a href={link("conversations", "new")}>write the first one here</a>.
      </p>
    </div>
  );
}

function Choose() {
  return (
    <section class="pane thread" aria-label="No conversation chosen">
      <div class="note">
        <p class="dim">
          Choose a conversation, or <a href={link("conversations", "new")}>begin one</a>.
        </p>
      </div>
    </section>
  );
}
