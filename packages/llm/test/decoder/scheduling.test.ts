import type { OnnxSession } from "@tritonjs/backends/onnxruntime";
import { Tensor } from "@tritonjs/core";
import { describe, expect, it } from "vitest";
import {
  alignRows,
  bytesPerToken,
  type DecoderGraph,
  detached,
  forwardPass,
  type KvBlock,
  type KvLayout,
  type KvSlice,
  PrefixCache,
} from "../../src/decoder/forward-pass.js";
import {
  KvBudget,
  type PassPadding,
  type Prefilling,
  planPrefill,
} from "../../src/decoder/generation-engine.js";
import { MOST_PREFILL_TOKENS, PrefillPace } from "../../src/decoder/prefill-pace.js";
import { Admission, type EngineLoad } from "../../src/decoder/text-generation.js";
import { type CopyWish, copyTexts } from "../support/copying-graph.js";
import { StoryTeller } from "../support/story-teller.js";

const load = (given: Partial<EngineLoad>): EngineLoad => ({
  taken: 0,
  reading: 0,
  runs: 0,
  running: 0,
  waiting: 0,
  room: 100,
  usedTokens: 0,
  totalTokens: 250,
  contextLength: 100,
  ...given,
});

describe("admission to the engine", () => {
  it("is free while every request could fill the context", () => {
    const admission = new Admission(8);
    admission.take(load({}));
    expect(admission.capacity).toBe(8);
    admission.sent();
    expect(admission.capacity).toBe(8);
  });

  it("lets one request after the other in when space may run out, as reports show that there is room", () => {
    const admission = new Admission(8);
    admission.take(load({}));
    admission.sent();
    admission.sent();
    expect(admission.capacity).toBe(0);
    admission.take(load({ taken: 2, running: 2, room: 83 }));
    expect(admission.capacity).toBe(8);
    admission.sent();
    expect(admission.capacity).toBe(0);
    admission.take(load({ taken: 3, running: 2, waiting: 1, room: 60 }));
    expect(admission.capacity).toBe(0);
    admission.take(load({ taken: 3, running: 3, room: 0 }));
    expect(admission.capacity).toBe(0);
    admission.take(load({ taken: 3, running: 1, room: 80 }));
    expect(admission.capacity).toBe(8);
  });

  it("lets others in beside requests whose formats are read", () => {
    const admission = new Admission(2);
    admission.take(load({ taken: 2, reading: 2 }));
    expect(admission.capacity).toBe(4);
    admission.take(load({ taken: 2, running: 2, waiting: 2, reading: 1 }));
    expect(admission.capacity).toBe(0);
  });

  it("starts to count again with a new engine", () => {
    const admission = new Admission(8);
    admission.take(load({ totalTokens: 50 }));
    admission.sent();
    expect(admission.capacity).toBe(0);
    admission.take(load({ totalTokens: 50 }));
    expect(admission.capacity).toBe(8);
  });
});

describe("the budget of keys and values", () => {
  it("counts rows that are padded to the longest", () => {
    const budget = new KvBudget(100);
    expect(budget.demand([10, 30, 20])).toBe(90);
    expect(budget.fits([10, 30, 20])).toBe(true);
    expect(budget.fits([10, 34, 20])).toBe(false);
    expect(budget.demand([])).toBe(0);
  });

  it("tells how long one more text may be", () => {
    const budget = new KvBudget(100);
    expect(budget.roomBeside([])).toBe(100);
    expect(budget.roomBeside([20, 30])).toBe(33);
    expect(budget.roomBeside([20, 40])).toBe(0);
  });
});

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

/** Costs of a run in milliseconds: a part for the weights, one for each token, and one for its attention to the past. */
const COSTS = {
  "a model whose weights take most of the time": (tokens: number, past: number) =>
    20 + 0.2 * tokens + 0.00002 * tokens * past,
  "a model that is slow on long prompts": (tokens: number, past: number) =>
    2 + 0.5 * tokens + 0.0004 * tokens * past,
};

const STREAMS: readonly CopyWish[] = [3, 5, 8, 13].map((first) => ({
  prompt: [first, 2, 3],
  maxTokens: 400,
}));

const LONG: CopyWish = {
  prompt: Array.from({ length: 4000 }, (_, i) => (i * i) % 53),
  maxTokens: 4,
  after: 60,
};

/** Quantiles of the gaps between the tokens of the streams, from the first token on. */
function gapsOf(times: readonly (readonly number[])[]) {
  const gaps = times
    .slice(0, STREAMS.length)
    .flatMap((own) => own.slice(1).map((time, i) => time - own[i]!))
    .sort((a, b) => a - b);
  const at = (share: number) => gaps[Math.min(gaps.length - 1, Math.floor(share * gaps.length))]!;
  return { p50: at(0.5), p99: at(0.99), most: gaps.at(-1)! };
}

describe("the pace of prompts", () => {
  it("a prompt that is alone takes as few runs as ever", async () => {
    const alone = { ...LONG, after: 0 };
    const measured = await copyTexts([alone], 0, { contextLength: 4200, prefillTokens: "measured" });
    const fixed = await copyTexts([alone], 0, { contextLength: 4200, prefillTokens: 256 });
    expect(measured.runs).toBe(fixed.runs);
  });
});

describe("the tokens of prompts in a step", () => {
  it("are as many as take four fifths of the time of a step for tokens", () => {
    const pace = new PrefillPace();
    expect(pace.limit(true)).toBe(16);
    pace.tookDecode(10);
    for (let i = 0; i < 10; i++) pace.tookPrefill(2 + 0.25 * pace.limit(true), pace.limit(true));
    expect(pace.limit(true)).toBeGreaterThanOrEqual(22);
    expect(pace.limit(true)).toBeLessThanOrEqual(24);
  });

  it("fall at once when a part was slow, and stay above the fewest", () => {
    const pace = new PrefillPace();
    pace.tookDecode(5);
    pace.tookPrefill(20, 16);
    expect(pace.limit(true)).toBe(4);
    pace.tookPrefill(1000, 4);
    expect(pace.limit(true)).toBe(4);
  });

  it("do not fall because a prompt ended early", () => {
    const pace = new PrefillPace();
    pace.tookDecode(10);
    pace.tookPrefill(0.5, 1);
    expect(pace.limit(true)).toBe(16);
  });

  it("are many while no text waits, and fixed if they are given", () => {
    expect(new PrefillPace().limit(false)).toBe(MOST_PREFILL_TOKENS);
    const fixed = new PrefillPace(64);
    fixed.tookDecode(1);
    fixed.tookPrefill(100, 64);
    expect([fixed.limit(true), fixed.limit(false)]).toEqual([64, 64]);
  });
});

describe.each(Object.entries(COSTS))("a prompt of 4,000 tokens beside four streams, on %s", (_, cost) => {
  const limits = { cost, contextLength: 4200 };

  it("leaves 99% of the gaps below twice the median", async () => {
    const measured = await copyTexts([...STREAMS, LONG], 0, { ...limits, prefillTokens: "measured" });
    const fixed = await copyTexts([...STREAMS, LONG], 0, { ...limits, prefillTokens: 256 });
    expect(measured.texts).toEqual(fixed.texts);
    const { p50, p99 } = gapsOf(measured.times);
    expect(p99 / p50).toBeLessThan(2);
    expect(gapsOf(fixed.times).p99).toBeGreaterThan(2 * p99);
    expect(measured.times[STREAMS.length]).toHaveLength(4);
  });
});

const layout: KvLayout = { layers: [], datatype: "FP32" };

const tokens = (first: number, length: number) => Array.from({ length }, (_, i) => first * 1000 + i);

const past = (length: number): KvSlice => ({
  block: { tensors: [], rows: 1, width: length },
  row: 0,
  start: 0,
  length,
});

function cacheOf(maxTokens: number, ...prompts: readonly (readonly number[])[]): PrefixCache {
  const cache = new PrefixCache(layout, maxTokens);
  for (const prompt of prompts) cache.add(prompt, past(prompt.length));
  return cache;
}

describe("cached prefixes", () => {
  it("the option prefixCacheBytes bounds what is kept after many different prompts", async () => {
    const tokenBytes = 512;
    const teller = new StoryTeller({ prefixCacheBytes: 60 * tokenBytes });
    try {
      for (const name of ["Tom", "Mia", "Ben", "Max", "Zoe", "Sam", "Kim"])
        await teller.text({
          prompt: `${name} was a big dog and lived in the house.`,
          sampling: { max_tokens: 3 },
        });
      const capacity = await teller.metric("tritonjs_generation_token_capacity");
      const kept = async () =>
        Math.round(capacity * (await teller.metric("tritonjs_generation_kv_cache_usage")));
      await expect.poll(() => teller.metric("tritonjs_generation_running")).toBe(0);
      await expect.poll(kept).toBeLessThanOrEqual(60);
      expect(await kept()).toBeGreaterThan(20);
    } finally {
      await teller.close();
    }
  });
});

describe("the cache of prefixes", () => {
  it("finds the longest common beginning, without the last token of the prompt", () => {
    const cache = cacheOf(100, tokens(1, 20));
    expect(cache.find([...tokens(1, 12), 5, 6])?.length).toBe(12);
    expect(cache.find(tokens(1, 20))?.length).toBe(19);
    expect(cache.find(tokens(2, 20))).toBeUndefined();
    expect(cache.find([...tokens(1, 4), 5, 6])).toBeUndefined();
    expect(cache.hits).toBe(2);
  });

  it("keeps the longer of two prompts that begin alike", () => {
    const cache = cacheOf(100, tokens(1, 10), tokens(1, 20), tokens(1, 15));
    expect(cache.tokens).toBe(20);
    expect(cache.find(tokens(1, 30))?.length).toBe(20);
  });

  it("keeps a prompt only if it has more than a hundredth that no other has", () => {
    const cache = cacheOf(1000, tokens(1, 396), tokens(1, 399));
    expect(cache.tokens).toBe(396);
    cache.add(tokens(1, 400), past(400));
    expect(cache.tokens).toBe(396);
    cache.add(tokens(1, 401), past(401));
    expect(cache.tokens).toBe(401);
  });

  it("drops the least recently used one first, when space is needed", () => {
    const cache = cacheOf(30, tokens(1, 10), tokens(2, 10), tokens(3, 10));
    cache.find(tokens(1, 12));
    cache.add(tokens(4, 10), past(10));
    expect(cache.find(tokens(2, 12))).toBeUndefined();
    expect(cache.find(tokens(1, 12))?.length).toBe(10);
    cache.shrinkTo(15);
    expect(cache.tokens).toBe(10);
    expect(cache.find(tokens(1, 12))?.length).toBe(10);
    cache.add(tokens(5, 31), past(31));
    expect(cache.tokens).toBe(10);
  });
});

describe("blocks of keys and values", () => {
  const layout: KvLayout = {
    layers: [
      { input: "a", output: "b", heads: 2, size: 1 },
      { input: "c", output: "d", heads: 1, size: 2 },
    ],
    datatype: "FP32",
  };

  /** A block whose elements tell their tensor, row, head, column and position. */
  function block(rows: number, width: number): KvBlock {
    const tensors = layout.layers.map(({ heads, size }, t) => {
      const elements = Float32Array.from(
        { length: rows * heads * width * size },
        (_, i) => (t + 1) * 1000 + i,
      );
      return Tensor.fromElements("FP32", [rows, heads, width, size], elements);
    });
    return { tensors, rows, width };
  }

  describe("keys and values", () => {
    it("are used as they are while the texts stay the same", () => {
      const all = block(2, 3);
      const slices = [
        { block: all, row: 0, start: 1, length: 2 },
        { block: all, row: 1, start: 0, length: 3 },
      ];
      expect(alignRows(slices, layout)).toBe(all);
      expect(alignRows([slices[1]], layout)).not.toBe(all);
      expect(alignRows([slices[1], slices[0]], layout)).not.toBe(all);
      expect(alignRows([slices[0], { ...slices[1]!, length: 2 }], layout)).not.toBe(all);
    });

    it("of texts that join lie at the right end of their rows", () => {
      const [one, other] = [block(1, 2), block(2, 3)];
      const joined = alignRows(
        [
          { block: one, row: 0, start: 0, length: 2 },
          { block: other, row: 1, start: 1, length: 1 },
          undefined,
        ],
        layout,
      );
      expect(joined.tensors.map(({ shape }) => shape)).toEqual([
        [3, 2, 2, 1],
        [3, 1, 2, 2],
      ]);
      expect([...joined.tensors[0]!.elements]).toEqual([
        1000, 1001, 1002, 1003, 0, 1007, 0, 1010, 0, 0, 0, 0,
      ]);
      expect([...joined.tensors[1]!.elements]).toEqual([
        2000, 2001, 2002, 2003, 0, 0, 2008, 2009, 0, 0, 0, 0,
      ]);
    });

    it("lie at the left end of their rows for an operator that counts from there", () => {
      const left = { ...layout, isLeft: true };
      const [one, other] = [block(1, 2), block(2, 3)];
      const slices = [
        { block: one, row: 0, start: 1, length: 1 },
        { block: other, row: 1, start: 0, length: 2 },
      ];
      const joined = alignRows(slices, left);
      expect([...joined.tensors[0]!.elements]).toEqual([1001, 0, 1003, 0, 1006, 1007, 1009, 1010]);
      const own = slices.map(({ length }, row) => ({ block: joined, row, start: 0, length }));
      expect(alignRows(own, left)).toBe(joined);
    });

    it("are copied out of a block that has more than them", () => {
      const alone = { block: block(1, 5), row: 0, start: 1, length: 4 };
      expect(detached(alone, layout)).toBe(alone);
      const part = detached({ ...alone, length: 2 }, layout);
      expect([...part.block.tensors[0]!.elements]).toEqual([1001, 1002, 1006, 1007]);
      expect(bytesPerToken(layout)).toBe(16);
      expect(bytesPerToken({ ...layout, datatype: "FP16" })).toBe(8);
    });
  });

  describe("a run of the graph", () => {
    const graph: DecoderGraph = {
      kv: layout,
      hasPositions: false,
      hasCacheBranch: false,
      keepsLastLogits: false,
      integers: "INT64",
    };
    /** Returns logits of one token, and keys and values of one more column. */
    const session = {
      runTensors: async (inputs: ReadonlyMap<string, Tensor>) => {
        const [rows, , width] = inputs.get("a")!.shape as [number, number, number];
        const next = block(rows, width + 1).tensors;
        const logits = Tensor.fromElements("FP32", [rows, 1, 1], new Float32Array(rows));
        return new Map([
          ["logits", logits],
          ["b", next[0]!],
          ["d", next[1]!],
        ]);
      },
    } as unknown as OnnxSession;
    const rowsOf = (all: KvBlock) =>
      Array.from({ length: all.rows }, (_, row) => ({
        past: { block: all, row, start: 0, length: all.width },
        tokens: [1],
      }));
    const bytes = ({ tensors }: KvBlock) =>
      tensors.map(({ elements }) => (elements as Float32Array).byteLength);

    it("frees the keys and values that it has read, and leaves those that are kept or that others have", async () => {
      const own = block(2, 3);
      const results = await forwardPass(session, graph, rowsOf(own), "last");
      expect(bytes(own)).toEqual([0, 0]);
      expect(bytes(results[0]!.past.block)).toEqual([64, 64]);
      const kept = { ...block(2, 3), isKept: true };
      await forwardPass(session, graph, rowsOf(kept), "last");
      const [, second] = rowsOf(block(2, 3));
      await forwardPass(session, graph, [second!], "last");
      expect([...bytes(kept), ...bytes(second!.past.block)]).toEqual([48, 48, 48, 48]);
    });

    it("leaves a prompt that the cache has taken over", async () => {
      const all = block(1, 10);
      const past = { block: all, row: 0, start: 0, length: 10 };
      const cache = new PrefixCache(layout, 100);
      cache.add(
        Array.from({ length: 10 }, (_, i) => i),
        past,
      );
      await forwardPass(session, graph, [{ past, tokens: [1] }], "last");
      expect(cache.find(Array.from({ length: 12 }, (_, i) => i))?.length).toBe(10);
      expect(bytes(all)).toEqual([80, 80]);
    });

    it("appends in place to a block that its texts have alone, and copies one that is kept or full", async () => {
      const widths: number[] = [];
      const direct = {
        writesInPlace: true,
        runTensors: async (
          inputs: ReadonlyMap<string, Tensor>,
          _: unknown,
          into: ReadonlyMap<string, Tensor>,
        ) => {
          expect([into.get("b"), into.get("d")]).toEqual([inputs.get("a"), inputs.get("c")]);
          widths.push(inputs.get("attention_mask")!.shape[1]!);
          const logits = Tensor.fromElements("FP32", [1, 1, 1], new Float32Array(1));
          return new Map([["logits", logits], ...into]);
        },
      } as unknown as OnnxSession;
      const left = { ...graph, kv: { ...layout, isLeft: true } };
      const step = async (past: KvSlice | undefined, room?: number) => {
        const [result] = await forwardPass(direct, left, [{ past, tokens: [1], room }], "last");
        return result!.past;
      };
      const first = await step(undefined, 10);
      const second = await step(first);
      expect([second.block === first.block, first.length, second.length]).toEqual([true, 1, 2]);
      expect(second.block.width).toBeGreaterThan(10);
      const full = { ...second, length: second.block.width };
      const grown = await step(full);
      expect(grown.block.width).toBeGreaterThan(full.length);
      expect(bytes(full.block)).toEqual([0, 0]);
      grown.block.isKept = true;
      const own = await step({ ...grown, length: 2 });
      expect(own.block).not.toBe(grown.block);
      expect(bytes(grown.block)[0]).toBeGreaterThan(0);
      expect(widths).toEqual([1, 2, full.length + 1, 3]);
    });

    it("copies a block that is appended to in place ever more rarely as it grows", async () => {
      const direct = {
        writesInPlace: true,
        runTensors: async (_: unknown, __: unknown, into: ReadonlyMap<string, Tensor>) =>
          new Map([["logits", Tensor.fromElements("FP32", [1, 1, 1], new Float32Array(1))], ...into]),
      } as unknown as OnnxSession;
      const left = { ...graph, kv: { ...layout, isLeft: true } };
      const widths = new Set<number>();
      let past: KvSlice | undefined;
      for (let i = 0; i < 600; i++) {
        const [result] = await forwardPass(direct, left, [{ past, tokens: [1] }], "last");
        past = result!.past;
        widths.add(past.block.width);
      }
      expect(past!.length).toBe(600);
      expect(widths.size).toBeLessThan(8);
      expect(past!.block.width).toBeLessThanOrEqual(900);
    });
  });
});
