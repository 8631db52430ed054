import { describe, expect, it } from "vitest";
import type { SamplingParameters } from "../../src/sampling/sampling-parameters.js";
import { TokenSampler, tokenLogprobs } from "../../src/sampling/token-sampler.js";

const SCORES = [0, 3, 2, 1, -1];

/** Tokens that a sampler chooses when the model always gives the same scores. */
function choose(
  parameters: SamplingParameters,
  count: number,
  { scores = SCORES, mask, prompt = [] as number[], end = [4], excluded = [] as number[][] } = {} as {
    scores?: readonly number[];
    excluded?: number[][];
    mask?: Int32Array;
    prompt?: number[];
    end?: number[];
  },
): number[] {
  const sampler = new TokenSampler(parameters, prompt, new Set(end), excluded);
  return Array.from({ length: count }, () => sampler.next(Float32Array.from(scores), mask));
}

/** Share of each token in many draws. */
function shares(parameters: SamplingParameters): number[] {
  const drawn = choose({ seed: 1, ...parameters }, 4000);
  return SCORES.map((_, id) => drawn.filter((one) => one === id).length / drawn.length);
}

describe("a sampler", () => {
  it("takes the most likely token at temperature 0", () => {
    expect(choose({}, 3)).toEqual([1, 1, 1]);
    expect(choose({ temperature: 0 }, 1, { scores: [2, 5, 5] })).toEqual([1]);
  });

  it("takes only allowed tokens", () => {
    expect(choose({ allowedTokenIds: [3, 0, 900] }, 2)).toEqual([3, 3]);
    expect(() => choose({ allowedTokenIds: [900] }, 1)).toThrow(
      "expected a token that 'allowed_token_ids', 'bad_words' and the format allow, got none",
    );
  });

  it("never completes a row of tokens that is excluded", () => {
    expect(choose({}, 3, { excluded: [[1]] })).toEqual([2, 2, 2]);
    expect(choose({}, 5, { excluded: [[1, 1, 1]] })).toEqual([1, 1, 2, 1, 1]);
    expect(
      choose({}, 4, {
        excluded: [
          [1, 1],
          [2, 1],
          [2, 2],
        ],
      }),
    ).toEqual([1, 2, 3, 1]);
  });

  it("draws tokens by their probability at the temperature", () => {
    const exponentials = (temperature: number) => SCORES.map((score) => Math.exp(score / temperature));
    for (const temperature of [0.5, 1, 2]) {
      const weights = exponentials(temperature);
      const total = weights.reduce((sum, one) => sum + one);
      for (const [id, share] of shares({ temperature }).entries()) {
        expect(share).toBeCloseTo(weights[id]! / total, 1);
      }
    }
  });

  it("gives the same tokens for the same seed, and others for another", () => {
    const draw = (seed: number) => choose({ temperature: 2, seed }, 40);
    expect(draw(5)).toEqual(draw(5));
    expect(draw(5)).not.toEqual(draw(6));
    expect(draw(2 ** 40 + 5)).not.toEqual(draw(5));
    expect(draw(-5)).toEqual(draw(-5));
  });

  it("leaves out tokens by top_k, top_p and min_p", () => {
    const kept = (parameters: SamplingParameters) =>
      shares({ temperature: 2, ...parameters }).flatMap((share, id) => (share > 0 ? [id] : []));
    expect(kept({})).toEqual([0, 1, 2, 3, 4]);
    expect(kept({ topK: 2 })).toEqual([1, 2]);
    expect(kept({ topP: 0.4 })).toEqual([1]);
    expect(kept({ topP: 0.6 })).toEqual([1, 2]);
    expect(kept({ minP: 0.3 })).toEqual([1, 2, 3]);
    expect(kept({ minP: 1 })).toEqual([1]);
  });

  it("lowers tokens that are in the text, or in the prompt", () => {
    expect(choose({ presencePenalty: 1.5 }, 3)).toEqual([1, 2, 1]);
    expect(choose({ frequencyPenalty: 0.6 }, 4)).toEqual([1, 1, 2, 1]);
    expect(choose({ repetitionPenalty: 2 }, 2, { prompt: [1] })).toEqual([2, 1]);
  });

  it("adds the bias, and does not end before min_tokens", () => {
    expect(choose({ logitBias: { 4: 50, 900: 1 } }, 1)).toEqual([4]);
    expect(choose({ logitBias: { 4: 50 }, minTokens: 2 }, 3)).toEqual([1, 1, 4]);
  });

  it("takes allowed tokens only, and ends before min_tokens if nothing else is allowed", () => {
    expect(choose({}, 1, { mask: Int32Array.of(0b01100) })).toEqual([2]);
    expect(choose({ temperature: 1, seed: 1, minTokens: 9 }, 1, { mask: Int32Array.of(0b10000) })).toEqual([
      4,
    ]);
  });
});

describe("logarithms of probabilities", () => {
  it("have the chosen token first, then the most likely ones, with their ranks", () => {
    const total = Math.log(SCORES.reduce((sum, score) => sum + Math.exp(score), 0));
    const entries = tokenLogprobs(Float32Array.from(SCORES), 3, 2);
    expect(entries.map(({ id, rank }) => [id, rank])).toEqual([
      [3, 3],
      [1, 1],
      [2, 2],
    ]);
    for (const { id, logprob } of entries) expect(logprob).toBeCloseTo(SCORES[id]! - total, 5);
    expect(tokenLogprobs(Float32Array.from(SCORES), 1, 1)).toHaveLength(1);
  });
});
