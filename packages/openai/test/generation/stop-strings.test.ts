import { describe, expect, it } from "vitest";
import { StopStrings } from "../../src/generation/stop-strings.js";

/** Reads a text that is cut into pieces of one size. */
function read(text: string, size: number, stops: readonly string[], included = false): string {
  const reader = new StopStrings(stops, included);
  let seen = "";
  for (let at = 0; at < text.length; at += size) {
    const { text: piece, stopped } = reader.push(text.slice(at, at + size));
    seen += piece;
    if (stopped) return `${seen}|`;
  }
  return seen + reader.end();
}

describe("stop strings", () => {
  it.each([
    ["one END two", ["END"], "one |"],
    ["aaab", ["aab"], "a|"],
    ["abcabd", ["abd", "cab"], "ab|"],
    ["first", ["second"], "first"],
    ["ends with EN", ["END"], "ends with EN"],
    ["x", ["x"], "|"],
  ])("ends %j before %j, however it is cut", (text, stops, expected) => {
    for (let size = 1; size <= text.length; size++) expect(read(text, size, stops)).toBe(expected);
  });

  it("may be part of the text", () => {
    expect(read("one END two", 2, ["END"], true)).toBe("one END|");
  });

  it("are never shown in part", () => {
    const reader = new StopStrings(["</s>"], false);
    expect(["a<", "/", "s", "b"].map((piece) => reader.push(piece).text)).toEqual(["a", "", "", "</sb"]);
  });
});
