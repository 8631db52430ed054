import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { greedySearch, PrefixBeamSearch, type SearchSettings } from "../../src/speech/prefix-beam-search.js";
import { framesOf, type RandomFrames } from "./random-frames.js";

const vocabulary = ["<blank>", "▁a", "b", "c", "▁d"];
const settings: SearchSettings = { vocabulary, beam: 10, cutoffProb: 1, hotWords: new Map() };

/** Frames with the probabilities of all units. */
function frames(...rows: readonly Readonly<Record<number, number>>[]): RandomFrames {
  const width = vocabulary.length;
  const logProbs = new Float32Array(rows.length * width);
  const ids = new Int32Array(rows.length * width);
  for (const [i, row] of rows.entries()) {
    const all = vocabulary.map((_, unit) => ({ unit, probability: row[unit] ?? 1e-9 }));
    all.sort((a, b) => b.probability - a.probability);
    logProbs.set(
      all.map(({ probability }) => Math.log(probability)),
      i * width,
    );
    ids.set(
      all.map(({ unit }) => unit),
      i * width,
    );
  }
  return { logProbs, ids, frames: rows.length, width };
}

function search(given: RandomFrames, changes: Partial<SearchSettings> = {}) {
  const made = new PrefixBeamSearch({ ...settings, ...changes });
  made.advance(given.logProbs, given.ids, given.frames, given.width);
  return made.results();
}

describe("a prefix beam search", () => {
  it("adds up the paths of a text, which greedy search does not", () => {
    // The likeliest path is two blanks (0.36), but 'a' has three paths with 0.16 + 0.24 + 0.24.
    const given = frames({ 0: 0.6, 1: 0.4 }, { 0: 0.6, 1: 0.4 });
    const [best, second] = search(given);
    expect(best!.units).toEqual([1]);
    expect(Math.exp(best!.score)).toBeCloseTo(0.64, 6);
    expect(second!.units).toEqual([]);
    expect(greedySearch(given.logProbs, given.ids, 2, given.width).units).toEqual([]);
  });

  it("tells a repeated unit from a long one by the blank between them", () => {
    expect(search(frames({ 2: 1 }, { 2: 1 }, { 3: 1 }))[0]!.units).toEqual([2, 3]);
    expect(search(frames({ 2: 1 }, { 0: 1 }, { 2: 1 }))[0]).toMatchObject({ units: [2, 2], frames: [0, 2] });
  });

  it("has the empty text, of probability 1, before any frame", () => {
    expect(search(frames())).toEqual([{ score: 0, units: [], frames: [] }]);
  });

  it("finds a hot word that is less likely than another, once the bonus is larger than the difference", () => {
    const given = frames({ 1: 0.7, 4: 0.3 }, { 2: 0.9, 3: 0.1 });
    const best = (bonus: number) => search(given, { hotWords: new Map([["dc", bonus]]) })[0]!;
    expect(best(0).units).toEqual([1, 2]);
    expect(best(5).units).toEqual([4, 3]);
    expect(best(5).score).toBeCloseTo(Math.log(0.3 * 0.1) + 5, 5);
  });

  it("goes on from a saved state as if it had not stopped", () => {
    const hotWords = new Map([["ab", 1.5]]);
    fc.assert(
      fc.property(framesOf(5, 4), fc.integer({ min: 1, max: 20 }), (given, size) => {
        const { logProbs, ids, width } = given;
        let state = new Uint8Array();
        let found = search({ ...given, frames: 0 }, { hotWords });
        for (let at = 0; at < given.frames; at += size) {
          const count = Math.min(size, given.frames - at);
          const next = new PrefixBeamSearch({ ...settings, hotWords }, state);
          next.advance(logProbs.subarray(at * width), ids.subarray(at * width), count, width);
          state = next.save() as Uint8Array<ArrayBuffer>;
          found = next.results();
        }
        expect(found).toEqual(search(given, { hotWords }));
      }),
    );
  });
});
