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
    const elements = Float32Array.from({ length: rows * heads * width * size }, (_, i) => (t + 1) * 1000 + i);
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
      [{ block: one, row: 0, start: 0, length: 2 }, { block: other, row: 1, start: 1, length: 1 }, undefined],
      layout,
    );
    expect(joined.tensors.map(({ shape }) => shape)).toEqual([
      [3, 2, 2, 1],
      [3, 1, 2, 2],
    ]);
    expect([...joined.tensors[0]!.elements]).toEqual([1000, 1001, 1002, 1003, 0, 1007, 0, 1010, 0, 0, 0, 0]);
    expect([...joined.tensors[1]!.elements]).toEqual([2000, 2001, 2002, 2003, 0, 0, 2008, 2009, 0, 0, 0, 0]);
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
