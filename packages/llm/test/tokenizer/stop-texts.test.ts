import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { StopTexts } from "../../src/text-answer.js";

/** The text that is released for these pieces, and whether a stop text ended it. */
function release(stops: readonly string[], pieces: readonly string[], keep = false) {
  const texts = new StopTexts(stops, keep);
  let text = "";
  for (const piece of pieces) {
    const released = texts.take(piece);
    text += released.text;
    if (released.stopped) return { text, stopped: true };
  }
  return { text: text + texts.rest(), stopped: false };
}

describe("stop texts", () => {
  it("end a text across the borders of its pieces", () => {
    expect(release(["END"], ["one E", "N", "D two"])).toEqual({ text: "one ", stopped: true });
    expect(release(["END"], ["one END"], true)).toEqual({ text: "one END", stopped: true });
  });

  it("release what only began like a stop text", () => {
    expect(release(["END"], ["one E", "N", "TRY"])).toEqual({ text: "one ENTRY", stopped: false });
    expect(release(["END"], ["EN"])).toEqual({ text: "EN", stopped: false });
  });

  it("end a text with the one that is complete first", () => {
    expect(release(["bcd", "c"], ["abcd"])).toEqual({ text: "ab", stopped: true });
    expect(release(["bcd", "c"], ["abcd"], true)).toEqual({ text: "abc", stopped: true });
    expect(release(["aab"], ["aaab"])).toEqual({ text: "a", stopped: true });
  });

  it("are never shown in part", () => {
    const texts = new StopTexts(["</s>"]);
    expect(["a<", "/", "s", "b"].map((piece) => texts.take(piece).text)).toEqual(["a", "", "", "</sb"]);
  });

  it("release at once what cannot begin a stop text", () => {
    expect(new StopTexts(["END", "xyz"]).take("text x")).toEqual({ text: "text ", stopped: false });
    expect(new StopTexts([]).take("text x")).toEqual({ text: "text x", stopped: false });
  });

  it("never divide a character", () => {
    const texts = new StopTexts([]);
    expect(texts.take(`a${"😀"[0]}`).text).toBe("a");
    expect(texts.take("😀"[1]!).text).toBe("😀");
  });

  it("give the same text for any division into pieces", () => {
    const letters = (most: number) => fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: most });
    const stops = fc.array(
      letters(4).filter((stop) => stop !== ""),
      { maxLength: 3 },
    );
    fc.assert(
      fc.property(fc.array(letters(5)), stops, fc.boolean(), (pieces, some, keep) => {
        expect(release(some, pieces, keep)).toEqual(release(some, [pieces.join("")], keep));
      }),
    );
  });
});
