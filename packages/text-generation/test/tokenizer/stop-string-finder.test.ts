import { describe, expect, it } from "vitest";
import { StopStringFinder } from "../../src/tokenizer/stop-string-finder.js";

/** The text that was released with each piece, and `!` after the end by a stop string. */
function release(stops: readonly string[], pieces: readonly string[], include = false): string[] {
  const strings = new StopStringFinder(stops, include);
  const seen: string[] = [];
  for (const piece of pieces) {
    const { text, stopped } = strings.push(piece);
    seen.push(stopped ? `${text}!` : text);
    if (stopped) return seen;
  }
  return [...seen, strings.end()];
}

describe("stop strings", () => {
  it("are found over the borders of pieces, and text before them is not delayed", () => {
    expect(release(["the end"], ["a story the", " e", "nd of it"])).toEqual(["a story ", "", "!"]);
    expect(release(["the end"], ["the", " en", "try"])).toEqual(["", "", "the entry", ""]);
  });

  it("release held text as soon as it cannot be part of one", () => {
    expect(release(["aab"], ["a", "a", "a", "b", "c"])).toEqual(["", "", "a", "!"]);
    expect(release(["xyz"], ["x", "xy", "q"])).toEqual(["", "x", "xyq", ""]);
    expect(release(["xyz"], ["axy"])).toEqual(["a", "xy"]);
  });

  it("end the text with the one that is complete first, and include it if asked", () => {
    expect(release(["bcd", "c"], ["abcd"])).toEqual(["ab!"]);
    expect(release(["bcd", "c"], ["abcd"], true)).toEqual(["abc!"]);
  });

  it("find the same in any division into pieces", () => {
    const text = "one two onetwo two. three";
    for (const stops of [["two."], ["onetwo"], ["e t", "zzz"], ["three!"], ["o"]]) {
      const whole = release(stops, [text]).join("");
      for (let size = 1; size < 8; size++) {
        const pieces = text.match(new RegExp(`.{1,${size}}`, "g"))!;
        expect(release(stops, pieces).join("")).toBe(whole);
      }
    }
  });
});
