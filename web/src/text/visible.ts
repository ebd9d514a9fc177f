/**
 * Text from others with what one cannot see made visible: control characters could fake rows in a copied text, and
 * marks of writing direction could make a reader see other words than were written.
 */

// Line feed and tab are what they look like; carriage returns only ever come before a line feed here.
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;
const DIRECTION = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u206a-\u206f\ufeff\ufff9-\ufffb]/g;

export function visible(text: string): string {
  return text
    .replace(/\r\n?/g, "\n")
    .replace(CONTROL, (sign) => {
      const code = sign.charCodeAt(0);
      if (code < 0x20) return String.fromCharCode(0x2400 + code);
      return code === 0x7f ? "\u2421" : named(code);
    })
    .replace(DIRECTION, (sign) => named(sign.charCodeAt(0)));
}

/** The first line for lists. */
export function firstLine(text: string, length_max = 160): string {
  const line = visible(text).split("\n").find((one) => one.trim() !== "") ?? "";
  return line.length > length_max ? `${line.slice(0, length_max)}…` : line;
}

function named(code: number): string {
  return `[U+${code.toString(16).toUpperCase().padStart(4, "0")}]`;
}
