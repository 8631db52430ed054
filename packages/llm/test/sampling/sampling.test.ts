import { describe, expect, it } from "vitest";
import { readSamplingParameters, type SamplingParameters } from "../../src/sampling/sampling-parameters.js";
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

const read = (fields: unknown) => readSamplingParameters({ json: JSON.stringify(fields) });

describe("sampling parameters", () => {
  it("have the names of OpenAI and vLLM", () => {
    expect(
      read({
        max_tokens: 16,
        temperature: 0.5,
        top_k: -1,
        stop: ".",
        logit_bias: { 5: -100 },
        logprobs: true,
        top_logprobs: 3,
        seed: null,
        model: "any other field",
      }),
    ).toEqual({ maxTokens: 16, temperature: 0.5, topK: 0, stop: ["."], logitBias: { 5: -100 }, logprobs: 3 });
    expect(read({ max_completion_tokens: 4, logprobs: 2 })).toEqual({ maxTokens: 4, logprobs: 2 });
  });

  it("come from the request's parameters without the tensor, also as text", () => {
    expect(
      readSamplingParameters({
        parameters: { max_tokens: 3n, temperature: "0.25", stop: '["a", "b"]', ignore_eos: true, stream: 1 },
      }),
    ).toEqual({ maxTokens: 3, temperature: 0.25, stop: ["a", "b"], ignoreEos: true });
    expect(readSamplingParameters({ parameters: { stop: "the end" } })).toEqual({ stop: ["the end"] });
    expect(readSamplingParameters({ json: "{}", parameters: { max_tokens: 0 } })).toEqual({});
  });

  it("contain structured output in the forms of both", () => {
    const schema = { type: "object" };
    const expected = { responseFormat: { type: "json_schema", schema } };
    expect(read({ response_format: { type: "json_schema", json_schema: { name: "a", schema } } })).toEqual(
      expected,
    );
    expect(read({ guided_json: JSON.stringify(schema) })).toEqual(expected);
    expect(read({ structured_outputs: { json: schema } })).toEqual(expected);
    expect(read({ structured_outputs: { choice: ["yes", "no"] } })).toEqual({
      responseFormat: { type: "choice", texts: ["yes", "no"] },
    });
    expect(read({ guided_regex: "a+" })).toEqual({ responseFormat: { type: "regex", pattern: "a+" } });
    expect(read({ response_format: { type: "json_object" } })).toEqual({
      responseFormat: { type: "json_object" },
    });
  });

  it.each([
    [{ json: { type: "object" } }, { type: "json_schema", schema: { type: "object" } }],
    [{ json_object: true, backend: "xgrammar" }, { type: "json_object" }],
    [{ regex: "a+" }, { type: "regex", pattern: "a+" }],
    [{ choice: ["yes", "no"] }, { type: "choice", texts: ["yes", "no"] }],
    [{ grammar: "root ::= [0-9]" }, { type: "grammar", grammar: "root ::= [0-9]" }],
  ])("read a structure as vLLM's Triton backend does: %j as text", (guide, responseFormat) => {
    for (const name of ["guided_decoding", "structured_outputs"]) {
      expect(read({ [name]: JSON.stringify(guide) })).toEqual({ responseFormat });
      expect(readSamplingParameters({ parameters: { [name]: JSON.stringify(guide) } })).toEqual({
        responseFormat,
      });
    }
  });

  it("take empty texts as none, as in the first request of TensorRT-LLM's documentation", () => {
    const parameters = { max_tokens: 20n, bad_words: "", stop_words: "" };
    expect(readSamplingParameters({ parameters })).toEqual({ maxTokens: 20 });
    expect(read({ stop: "", bad_words: [""] })).toEqual({});
    expect(read({ stop: ["", "."] })).toEqual({ stop: ["."] });
    expect(readSamplingParameters({ parameters: { bad_words: "no", stop_words: "." } })).toEqual({
      badWords: ["no"],
      stop: ["."],
    });
  });

  it.each([
    [{ temperature: "hot" }, "'temperature': expected a number from 0 to 100, got \"hot\""],
    [{ temperature: -1 }, "'temperature': expected a number from 0 to 100, got -1"],
    [{ max_tokens: -1 }, "'max_tokens': expected an integer of at least 0, got -1"],
    [{ max_tokens: 1.5 }, "'max_tokens': expected an integer of at least 0, got 1.5"],
    [
      { n: 1000 },
      "'n': expected 1, because a request gets one text: send one request for each text, got 1000",
    ],
    [
      { guided_json: `${'{"not":'.repeat(10_000)}{}${"}".repeat(10_000)}` },
      "'guided_json': expected a JSON schema of at most 100 levels, got more",
    ],
    [{ stop: Array.from({ length: 100 }, () => "x") }, "got 100 strings"],
    [{ stop: [5] }, "'stop': expected a string or at most 16 strings of 1 to 1024 characters, got 5"],
    [{ guided_decoding: "{" }, "'guided_decoding': expected an object or its JSON, got \"{\""],
    [{ top_p: 0 }, "'top_p': expected a number above 0 and at most 1, got 0"],
    [{ top_k: 2.5 }, "'top_k': expected an integer of at least -1, got 2.5"],
    [
      { logit_bias: { a: 1 } },
      "'logit_bias': expected an object from token numbers to numbers from -100 to 100, got {\"a\":1}",
    ],
    [{ logprobs: 21 }, "'logprobs': expected an integer from 0 to 20, got 21"],
    [{ stop_token_ids: [-1] }, "'stop_token_ids': expected a list of token numbers, got [-1]"],
    [{ allowed_token_ids: [] }, "'allowed_token_ids': expected a list of at least one token number, got []"],
    [
      { bad_words: [1] },
      "'bad_words': expected a string or at most 64 strings of 1 to 1024 characters, got [1]",
    ],
    [{ bad_words: [" "] }, "'bad_words': expected a string or at most 64 strings of 1 to 1024 characters"],
    [{ guided_regex: "" }, "'guided_regex': expected a string that is not empty, got \"\""],
    [
      { guided_regex: "a+", response_format: { type: "json_object" } },
      "'response_format': expected one structure of the text, got json_object and regex",
    ],
    [{ response_format: { type: "xml" } }, "'response_format': expected an object with type"],
    [{ use_beam_search: true }, "beam search is not supported"],
  ])("refuses %j and names the field", (fields, text) => {
    expect(() => read(fields)).toThrow(text);
    expect(() => read(fields)).toThrow(
      expect.objectContaining({ code: "INVALID_ARG", reason: "INVALID_INPUT" }),
    );
  });

  it("refuses NaN in the request's parameters, and text that is not an object of JSON", () => {
    expect(() => readSamplingParameters({ parameters: { temperature: Number.NaN } })).toThrow("got NaN");
    expect(() => readSamplingParameters({ json: "[1]" })).toThrow(
      "input 'sampling_parameters': expected a JSON object, got a list",
    );
    expect(() => readSamplingParameters({ json: '{"temperature": NaN}' })).toThrow("text that is not JSON");
  });
});
