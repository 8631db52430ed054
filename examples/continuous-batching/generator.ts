import { done, stepwise, type Triton, TritonError } from "@tritonjs/core";
import { corpus } from "./corpus.js";
import { MarkovModel } from "./markov-model.js";

const DEFAULT_TOKENS = 80;
/** The end of a text. */
const END = "\n";

/**
 * Binds `text-generator`: continues `text_input` by one character a step, until the end of a paragraph or for
 * `max_tokens` characters. Equal inputs give equal texts.
 *
 * All requests run in one loop: each step makes the next character of every active text. Requests join and leave
 * between two steps.
 *
 * @returns the handle, and the number of active texts in each step
 */
export function bindTextGenerator(triton: Triton, maxStreams = 32) {
  const language = new MarkovModel(corpus, 6);
  const steps: number[] = [];
  const handle = triton.bind({
    modelName: "text-generator",
    inputs: [
      { name: "text_input", dtype: "BYTES", shape: [1] },
      { name: "max_tokens", dtype: "INT32", shape: [1], optional: true },
      { name: "seed", dtype: "UINT32", shape: [1], optional: true },
    ],
    outputs: [{ name: "text_output", dtype: "BYTES", shape: [1] }],
    inferFunc: stepwise({
      start: ({ text_input, max_tokens, seed }) => {
        const left = max_tokens?.get(0) ?? DEFAULT_TOKENS;
        if (left < 1) throw new TritonError("INVALID_ARG", `max_tokens must be at least 1, got ${left}`);
        return { text: text_input.text(), left, random: seededRandom(seed?.get(0) ?? 0) };
      },
      step: (active) => {
        steps.push(active.length);
        return active.map((one) => {
          const character = language.next(one.text, one.random());
          if (character === END) return done();
          one.text += character;
          one.left--;
          const outputs = { text_output: [character] };
          return one.left === 0 ? done(outputs) : outputs;
        });
      },
    }),
    config: { maxBatchSize: maxStreams },
  });
  return { handle, steps };
}

/** Repeatable random numbers from 0 to 1 (mulberry32). */
function seededRandom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
