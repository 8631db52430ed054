import { describe, expect, it } from "vitest";
import { type PassPadding, type Prefilling, planPrefill } from "../../src/decoder/generation-engine.js";

/** A prompt of a length that shares nothing with others, unless they have the same first token. */
function prompt(first: number, length: number, computed = 0): Prefilling {
  const tokens = Array.from({ length }, (_, i) => first * 1000 + i);
  return { tokens, computed, pending: length - computed };
}

const plan = (waiting: readonly Prefilling[], limit: number, shares = true, pads: PassPadding = "all") =>
  planPrefill(waiting, limit, shares, pads).map(({ text, count }) => [
    waiting.indexOf(text as Prefilling),
    count,
  ]);

describe("a pass over prompts", () => {
  it("computes several short prompts together, as long as their padded rows stay below the limit", () => {
    expect(plan([prompt(1, 4), prompt(2, 6), prompt(3, 5)], 18)).toEqual([
      [0, 4],
      [1, 6],
      [2, 5],
    ]);
    expect(plan([prompt(1, 4), prompt(2, 16), prompt(3, 5)], 16)).toEqual([
      [0, 4],
      [2, 5],
    ]);
  });

  it("computes part of a long prompt", () => {
    expect(plan([prompt(1, 100)], 16)).toEqual([[0, 16]]);
    expect(plan([prompt(1, 100, 96), prompt(2, 4)], 16)).toEqual([[0, 4]]);
    expect(plan([], 16)).toEqual([]);
  });

  it("pads only prompts that begin, or none, if the graph asks for it", () => {
    const begun = [prompt(1, 9, 4), prompt(2, 8, 4), prompt(3, 9, 4)];
    expect(plan(begun, 100, true, "prompts")).toEqual([[0, 5]]);
    expect(plan([prompt(1, 5, 4), prompt(2, 5, 4)], 100, true, "prompts")).toEqual([
      [0, 1],
      [1, 1],
    ]);
    const fresh = [prompt(1, 9), prompt(2, 8)];
    expect(plan(fresh, 100, true, "prompts")).toEqual([
      [0, 9],
      [1, 8],
    ]);
    expect(plan(fresh, 100, true, "none")).toEqual([[0, 9]]);
    expect(plan([prompt(1, 9), prompt(2, 9)], 100, true, "none")).toEqual([[0, 9]]);
  });

  it("lets a prompt wait for one that begins alike, unless prefixes are not shared", () => {
    expect(plan([prompt(1, 10), prompt(1, 12)], 100)).toEqual([[0, 10]]);
    expect(plan([prompt(1, 10), prompt(1, 12)], 100, false)).toEqual([
      [0, 10],
      [1, 12],
    ]);
  });
});
