import { describe, expect, test } from "vitest";
import { mentioned } from "./mentions";
import { completed, suggest } from "./suggest";
import { age, clock, span } from "./time";
import { firstLine, visible } from "./visible";
import { conversationName, count, short } from "./words";

describe("what one cannot see", () => {
  test.each([
    ["plain\ttext\nwith lines", "plain\ttext\nwith lines"],
    ["one\r\ntwo\rthree", "one\ntwo\nthree"],
    ["\u0000\u0007\u001b[31m", "\u2400\u2407\u241b[31m"],
    ["\u007f\u0085", "\u2421[U+0085]"],
    ["a\u202egnp.exe", "a[U+202E]gnp.exe"],
    ["\u2066x\u2069\u200f\u061c", "[U+2066]x[U+2069][U+200F][U+061C]"],
    ["family \u{1f468}\u200d\u{1f469}", "family \u{1f468}\u200d\u{1f469}"],
    ["שלום", "שלום"],
  ])("%j is shown as %j", (written, shown) => {
    expect(visible(written)).toBe(shown);
  });

  test("a list shows the first line that says something, cut", () => {
    expect(firstLine("\n \nhello\nworld")).toBe("hello");
    expect(firstLine("x".repeat(10), 4)).toBe("xxxx…");
    expect(firstLine("")).toBe("");
  });
});

describe("mentions", () => {
  const members = new Set(["ci", "jane", "v1.2", "a-b"]);
  test.each([
    ["@ci look", ["ci"]],
    ["ask @jane, then @ci.", ["jane", "ci"]],
    ["@ci @ci", ["ci"]],
    ["@nobody and mail me@ci", []],
    ["@v1.2. and (@a-b)", ["v1.2", "a-b"]],
    ["@@ci", []],
  ])("%j names %j", (body, names) => {
    expect(mentioned(body, members)).toEqual(names);
  });

  test("are at most as many as the broker takes", () => {
    const many = Array.from({ length: 20 }, (_, n) => `m${n}`);
    expect(mentioned(many.map((name) => `@${name}`).join(" "), new Set(many))).toHaveLength(16);
  });
});

test("ages step from now over minutes and hours to days, and never run backwards", () => {
  const minute = 60_000;
  const told = [0, 59_999, minute, 59 * minute, 60 * minute, 47 * 60 * minute, 48 * 60 * minute, -5_000].map((past) => age(0, past));
  expect(told).toEqual(["now", "now", "1 min", "59 min", "1 h", "1 d", "2 d", "now"]);
});

test("a clock time names its day unless it is today's", () => {
  const at = new Date(2026, 10, 15, 9, 5, 7, 30).getTime();
  expect(clock(at, at, "minutes")).toBe("09:05");
  expect(clock(at, at, "seconds")).toBe("09:05:07");
  expect(clock(at, at + 86_400_000, "milliseconds")).toBe("15 Nov 09:05:07.030");
  expect(clock(at, at - 365 * 86_400_000, "minutes")).toBe("15 Nov 2026 09:05");
});

test("spans keep the unit one would say", () => {
  expect([26, 999, 38_400, 240_000].map(span)).toEqual(["26 ms", "999 ms", "38.4 s", "4 min"]);
});

test("our ids are told by their tail, others' whole, and names without a sigil", () => {
  expect(short("01M7GH3C2R6V0D9QK1TJX4N8YE")).toBe("X4N8YE");
  expect(short("ci-4127-done")).toBe("ci-4127-done");
  expect([conversationName("@ci"), conversationName("#alerts")]).toEqual(["ci", "#alerts"]);
  expect([count(1, "row"), count(1_847, "row"), count(2, "copy", "copies")]).toEqual(["1 row", "1,847 rows", "2 copies"]);
});

describe("names while one types", () => {
  const members = new Set(["ci", "claude", "jane"]);
  test.each([
    ["@", 1, ["ci", "claude", "jane"]],
    ["ask @c", 6, ["ci", "claude"]],
    ["@ci", 3, undefined],
    ["mail me@c", 9, undefined],
    ["@zz", 3, undefined],
    ["@c later", 2, ["ci", "claude"]],
    ["no", 2, undefined],
  ])("%j at %i offers %j", (text, caret, names) => {
    expect(suggest(text, caret, members)?.names).toEqual(names);
  });

  test("the chosen one takes the place of what was begun", () => {
    const offered = suggest("ask @c now", 6, members);
    expect(offered && completed("ask @c now", 6, offered, "claude")).toEqual({ text: "ask @claude now", caret: 12 });
  });
});
