/**
 * A message's Markdown as harmless HTML.
 *
 * - Nothing a message holds is ever loaded or run: no images, no frames, no forms, no styles, no scripts.
 * - Links lead only to http, https and mail addresses, and tell the place they lead to nothing about this page.
 */

import DOMPurify from "dompurify";
import { Marked } from "marked";
import { visible } from "./visible";

const TAGS = [
  ...["p", "br", "hr", "strong", "em", "del", "code", "pre", "blockquote", "ul", "ol", "li", "a"],
  ...["h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"],
];
const LINKS = /^(?:https?:|mailto:)/i;

const reader = new Marked({
  gfm: true,
  breaks: true,
  async: false,
  renderer: {
    // Tags a message holds are words like others: shown, not obeyed.
    html: ({ text }) => escaped(text),
    // A picture would be fetched from somewhere; its address is shown instead.
    image: ({ href, text }) => `<a href="${escaped(href)}">${escaped(text || href)}</a>`,
  },
});
const purifier = DOMPurify(window);
purifier.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName === "A") {
    node.setAttribute("rel", "noopener noreferrer nofollow");
    node.setAttribute("target", "_blank");
  }
  // Both scroll sideways when they are wide, which a keyboard must be able to do too.
  if (node.tagName === "PRE" || node.tagName === "TABLE") node.setAttribute("tabindex", "0");
});

/** One line of words and nothing that Markdown or HTML could take for more: most rows of a fast stream. */
const PLAIN = /^(?!\d+[.)])[\p{L}\p{N}][\p{L}\p{N} .,:;?!'"()%/]*$/u;
/** What GFM makes a link of without brackets. */
const ADDRESS = /:\/\/|www\./i;

/** HTML of `body`; names of `mentions` are marked. */
export function html(body: string, mentions: readonly string[]): string {
  if (PLAIN.test(body) && !ADDRESS.test(body)) return `<p>${escaped(body)}</p>`;
  const raw = reader.parse(visible(body)) as string;
  const tree = purifier.sanitize(raw, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ["href", "start"],
    ALLOWED_URI_REGEXP: LINKS,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
  });
  if (mentions.length > 0) markMentions(tree, new Set(mentions));
  const host = document.createElement("div");
  host.append(tree);
  return host.innerHTML;
}

function markMentions(tree: DocumentFragment, names: ReadonlySet<string>): void {
  const walker = document.createTreeWalker(tree, NodeFilter.SHOW_TEXT);
  const texts: Text[] = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (!node.parentElement?.closest("code, a")) texts.push(node as Text);
  }
  for (const text of texts) {
    // Split keeps what the group matched, so that odd parts are names with their sign.
    const parts = text.data.split(/(@[a-z0-9][a-z0-9._-]{0,62})/);
    if (parts.length < 2) continue;
    text.replaceWith(...parts.map((part, place) => (place % 2 === 1 ? mention(part, names) : part)));
  }
}

function escaped(text: string): string {
  const host = document.createElement("span");
  host.textContent = text;
  return host.innerHTML.replaceAll('"', "&quot;");
}

function mention(part: string, names: ReadonlySet<string>): string | HTMLElement {
  const name = part.slice(1).replace(/[._-]+$/, "");
  if (!names.has(name)) return part;
  const mark = document.createElement("span");
  mark.className = "at";
  mark.textContent = part;
  return mark;
}
