import { elementCount } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { emptyModelConfig } from "../../../../../packages/core/src/config/defaults.js";
import { graphFor, graphSpecs } from "../../../src/onnxruntime/cuda-graphs.js";
import { paddedRows } from "../../../src/onnxruntime/device-copies.js";

describe("the rows of padded copies", () => {
  it("move each element between a tensor and a larger one around it", () => {
    for (const [shape, padded] of [
      [[], []],
      [[3], [5]],
      [
        [2, 3],
        [4, 3],
      ],
      [
        [2, 3],
        [2, 4],
      ],
      [
        [2, 3, 2],
        [3, 5, 2],
      ],
      [
        [2, 3, 2, 2],
        [4, 4, 2, 3],
      ],
      [
        [2, 1, 3, 2, 2],
        [2, 2, 4, 2, 4],
      ],
      [
        [2, 0],
        [2, 4],
      ],
    ] as const) {
      const moved = new Map<number, number>();
      for (const { at, paddedAt, width, pitch, height } of paddedRows(shape, padded)) {
        for (let row = 0; row < height; row++) {
          for (let i = 0; i < width; i++) moved.set(at + row * width + i, paddedAt + row * pitch + i);
        }
      }
      const places = Array.from({ length: elementCount(shape) }, (_, i) => {
        let [rest, place, stride] = [i, 0, 1];
        for (let axis = shape.length - 1; axis >= 0; axis--) {
          place += (rest % shape[axis]!) * stride;
          rest = Math.floor(rest / shape[axis]!);
          stride *= padded[axis]!;
        }
        return [i, place] as const;
      });
      expect([...moved].sort(([a], [b]) => a - b)).toEqual(places);
    }
    expect(paddedRows([64, 3, 100, 200], [64, 3, 100, 224])).toHaveLength(1);
  });
});

describe("the graphs of a model", () => {
  const config = (more: object) => ({ ...emptyModelConfig(), maxBatchSize: 32, ...more });
  const sizes = (more: object) => graphSpecs(config(more), []).map(({ batchSize }) => batchSize);

  it("are by default those that Triton captures", () => {
    expect(sizes({})).toEqual([1, 2, 3, 4, 6, 8, 12, 16, 32]);
    expect(sizes({ maxBatchSize: 5 })).toEqual([1, 2, 3, 4, 5]);
    expect(sizes({ maxBatchSize: 0 })).toEqual([0]);
    const dynamicBatching = { preferredBatchSize: [4, 8, 64] };
    expect(sizes({ dynamicBatching })).toEqual([1, 4, 8, 32]);
    expect(sizes({ dynamicBatching: { preferredBatchSize: [] } })).toEqual([1, 32]);
  });

  it("are tried in the order of their rows, and then of the dims of one input after another, as in Triton", () => {
    const spec = (batchSize: number, lowest: number, dims?: readonly number[], least = dims) => ({
      batchSize,
      input: dims === undefined ? {} : { x: { dim: [...dims] } },
      graphLowerBound: { batchSize: lowest, input: least === undefined ? {} : { x: { dim: [...least] } } },
    });
    const graphSpec = [
      spec(16, 1),
      spec(8, 5),
      spec(8, 6, [4, 2], [1, 1]),
      spec(8, 7, [3, 9], [2, 2]),
      spec(4, 4),
      spec(8, 7, [3, 9], [1, 1]),
    ];
    const chosen = (rows: number, dims: readonly number[] = [5, 5]) => {
      const specs = graphSpecs(config({ optimization: { cuda: { graphs: true, graphSpec } } }), ["x"]);
      const found = graphFor(specs, rows, () => dims);
      return found && [found.batchSize, found.lowestBatchSize, ...(found.inputs.get("x")?.dims ?? [])];
    };
    expect([1, 4, 5, 8, 9, 16, 17].map((count) => chosen(count)?.[0])).toEqual([
      16,
      4,
      8,
      8,
      16,
      16,
      undefined,
    ]);
    expect(chosen(8, [3, 9])).toEqual([8, 7, 3, 9]);
    // The first in the order, although the other has fewer elements.
    expect(chosen(8, [3, 2])).toEqual([8, 7, 3, 9]);
    expect(chosen(6, [3, 2])).toEqual([8, 6, 4, 2]);
    // Of two for the same shape, the second of the configuration is not captured.
    expect(chosen(8, [1, 9])).toEqual([8, 5]);
    expect(chosen(8, [5, 2])).toEqual([8, 5]);
  });
});
