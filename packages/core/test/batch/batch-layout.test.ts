import type { ModelConfig, Tensor, TensorSpec } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import type { PaddingRules } from "../../src/batch/batch-layout.js";
import { BatchLayout } from "../../src/batch/batch-layout.js";
import type { Tensors } from "../../src/batch/batch-tensors.js";
import { modelConfig } from "../support/model-config.js";
import { thrownText } from "../support/requests.js";
import { fp32, ones } from "../support/tensors.js";

const x: TensorSpec = { name: "x", dtype: "FP32", shape: [-1] };
const raggedX: TensorSpec = { ...x, allowRaggedBatch: true };
const y: TensorSpec = { name: "y", dtype: "FP32", shape: [-1] };
const ordinary: TensorSpec = { name: "z", dtype: "FP32", shape: [1] };

const seen = (tensor: Tensor | undefined) => tensor && [tensor.shape, [...(tensor.elements as Float32Array)]];
const all = (tensors: Tensors) =>
  Object.fromEntries([...tensors].map(([name, tensor]) => [name, seen(tensor)]));
const request = (inputs: Record<string, Tensor>): Tensors => new Map(Object.entries(inputs));

/** Three requests of x: two rows of length 2, one of length 3, one of length 1. */
const three = [
  request({ x: fp32([2, 2], [1, 2, 3, 4]) }),
  request({ x: fp32([1, 3], [5, 6, 7]) }),
  request({ x: fp32([1, 1], [8]) }),
];
const rows = [2, 1, 1];

function layout(inputs: readonly TensorSpec[], outputs: readonly TensorSpec[] = [y], padding?: PaddingRules) {
  return new BatchLayout(modelConfig({ inputs, outputs }), padding);
}

const padded = (rules: Partial<PaddingRules> = {}): PaddingRules => ({
  values: { x: -1 },
  masks: [],
  cuts: [],
  ...rules,
});

describe("merging the inputs of a batch", () => {
  it("concatenates rows by default", () => {
    const plain = layout([ordinary]);
    expect(plain.isPlain).toBe(true);
    const merged = plain.merge([request({ z: fp32([2, 1], [1, 2]) }), request({ z: fp32([1, 1], [3]) })]);
    expect(all(merged)).toEqual({
      z: [
        [3, 1],
        [1, 2, 3],
      ],
    });
  });

  it("flattens ragged inputs into one dimension, even for one request", () => {
    const ragged = layout([raggedX]);
    expect(all(ragged.merge(three))).toEqual({ x: [[8], [1, 2, 3, 4, 5, 6, 7, 8]] });
    expect(all(ragged.merge(three.slice(0, 1)))).toEqual({ x: [[4], [1, 2, 3, 4]] });
  });

  it("keeps one copy of a shape tensor", () => {
    const size = { name: "size", dtype: "FP32", shape: [2], isShapeTensor: true } as const;
    const merged = layout([ordinary, size]).merge([
      request({ z: ones(1, 1), size: fp32([2], [4, 5]) }),
      request({ z: ones(2, 1), size: fp32([2], [4, 5]) }),
    ]);
    expect(all(merged)).toEqual({
      z: [
        [3, 1],
        [1, 1, 1],
      ],
      size: [[2], [4, 5]],
    });
  });

  it("pads inputs to the longest one", () => {
    expect(all(layout([x], [y], padded()).merge(three))).toEqual({
      x: [
        [4, 3],
        [1, 2, -1, 3, 4, -1, 5, 6, 7, 8, -1, -1],
      ],
    });
  });

  it("adds a mask of the padded elements", () => {
    const masks = [{ name: "mask", datatype: "FP32" as const, sourceInput: "x" }];
    expect(seen(layout([x], [y], padded({ masks })).merge(three).get("mask"))).toEqual([
      [4, 3],
      [1, 1, 0, 1, 1, 0, 1, 1, 1, 1, 0, 0],
    ]);
  });

  it("pads with the model's own function", () => {
    const pad: PaddingRules["pad"] = (requests) =>
      requests.map(({ x: given }) => {
        const [count, length] = given!.shape as [number, number];
        const values = new Float32Array(count * 3);
        for (let row = 0; row < count; row++) {
          for (let i = 0; i < length; i++) values[row * 3 + 3 - length + i] = given!.get(row, i);
        }
        return { x: values };
      });
    const merged = layout([x], [y], padded({ values: {}, pad })).merge(three);
    expect(all(merged)).toEqual({
      x: [
        [4, 3],
        [0, 1, 2, 0, 3, 4, 5, 6, 7, 0, 0, 8],
      ],
    });
  });

  it.each([
    [() => [], "returned a wrong list: expected 3 entries, one for each request, got 0 entries"],
    [() => undefined, "returned a wrong list: expected 3 entries, one for each request, got undefined"],
    [() => [{}, {}, {}], "returned no input 'x' for a request"],
    [(requests: readonly unknown[]) => requests, "returned input 'x' with shape [1,3], expected [1,2]"],
    [
      () => {
        throw new Error("no padding today");
      },
      "threw an error: no padding today",
    ],
  ])("fails when the model's padding function misbehaves", (pad, text) => {
    const bad = layout([x], [y], padded({ values: {}, pad: pad as unknown as PaddingRules["pad"] }));
    expect(thrownText(() => bad.merge(three))).toBe(`INTERNAL pad of model 'm' ${text}`);
  });
});

describe("batch inputs", () => {
  const made = (kind: string, dtype: "INT32" | "FP32" = "INT32") =>
    seen(
      layout([
        raggedX,
        {
          name: "made",
          dtype,
          shape: [1],
          batchInput: { kind: kind as "BATCH_ITEM_SHAPE", sourceInput: "x" },
        },
      ])
        .merge(three)
        .get("made"),
    );

  it.each([
    ["BATCH_ELEMENT_COUNT", [3], [4, 3, 1]],
    ["BATCH_ACCUMULATED_ELEMENT_COUNT", [3], [4, 7, 8]],
    ["BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO", [4], [0, 4, 7, 8]],
    ["BATCH_MAX_ELEMENT_COUNT_AS_SHAPE", [4], [0, 0, 0, 0]],
    ["BATCH_ITEM_SHAPE", [4, 1], [2, 2, 3, 1]],
    ["BATCH_ITEM_SHAPE_FLATTEN", [4], [2, 2, 3, 1]],
  ])("contain Triton's values for kind %s", (kind, shape, values) => {
    expect(made(kind)).toEqual([shape, values]);
    expect(made(kind, "FP32")).toEqual([shape, values]);
  });

  it("have one column for each dimension of their source", () => {
    const image: TensorSpec = { name: "x", dtype: "FP32", shape: [-1, -1], allowRaggedBatch: true };
    const size: TensorSpec = {
      name: "size",
      dtype: "INT32",
      shape: [2],
      batchInput: { kind: "BATCH_ITEM_SHAPE", sourceInput: "x" },
    };
    const merged = layout([image, size]).merge([
      request({ x: ones(1, 2, 3) }),
      request({ x: ones(2, 1, 4) }),
    ]);
    expect(seen(merged.get("size"))).toEqual([
      [3, 2],
      [2, 3, 1, 4, 1, 4],
    ]);
  });

  it("describe a padded input as it was before padding", () => {
    const length: TensorSpec = {
      name: "length",
      dtype: "INT32",
      shape: [1],
      batchInput: { kind: "BATCH_ITEM_SHAPE", sourceInput: "x" },
    };
    const merged = layout([x, length], [y], padded()).merge(three);
    expect(seen(merged.get("length"))).toEqual([
      [4, 1],
      [2, 2, 3, 1],
    ]);
  });

  it("are copied to all of their targets", () => {
    const batchInput: ModelConfig["batchInput"] = [
      { kind: "BATCH_ELEMENT_COUNT", targetName: ["a", "b"], dataType: "TYPE_INT32", sourceInput: ["x"] },
    ];
    const both = new BatchLayout(modelConfig({ inputs: [raggedX], overrides: { batchInput } })).merge(three);
    expect([...both.keys()]).toEqual(["x", "a", "b"]);
    expect(seen(both.get("b"))).toEqual([[3], [4, 3, 1]]);
  });

  it("reject requests without their source input", () => {
    const batchInput: ModelConfig["batchInput"] = [
      { kind: "BATCH_ELEMENT_COUNT", targetName: ["a"], dataType: "TYPE_INT32", sourceInput: ["x"] },
    ];
    const optional = { ...raggedX, optional: true };
    const config = modelConfig({ inputs: [optional, ordinary], overrides: { batchInput } });
    expect(thrownText(() => new BatchLayout(config).merge([request({ z: ones(1, 1) })]))).toBe(
      "INVALID_ARG cannot compute batch input 'a': the request has no input 'x'",
    );
  });
});

describe("splitting the outputs of a batch", () => {
  const scatter: TensorSpec = {
    ...y,
    batchOutput: { kind: "BATCH_SCATTER_WITH_INPUT_SHAPE", sourceInput: "x" },
  };

  it("gives each request scattered elements in the shape of its input", () => {
    const output = request({ y: fp32([8], [1, 2, 3, 4, 5, 6, 7, 8]) });
    expect(layout([raggedX], [scatter]).split(output, three, rows).map(all)).toEqual([
      {
        y: [
          [2, 2],
          [1, 2, 3, 4],
        ],
      },
      {
        y: [
          [1, 3],
          [5, 6, 7],
        ],
      },
      { y: [[1, 1], [8]] },
    ]);
  });

  it("rejects scattered outputs whose element count differs from the inputs", () => {
    const output = request({ y: fp32([7], [1, 2, 3, 4, 5, 6, 7]) });
    expect(thrownText(() => layout([raggedX], [scatter]).split(output, three, rows))).toBe(
      "INTERNAL model 'm' returned output 'y' with 7 elements, expected 8, as the inputs 'x' of the batch have",
    );
  });

  it("cuts padded outputs back to the length of each request", () => {
    const cuts = [{ name: "y", sourceInput: "x" }];
    const output = request({ y: fp32([4, 3], [1, 2, 0, 3, 4, 0, 5, 6, 7, 8, 0, 0]) });
    expect(layout([x], [y], padded({ cuts })).split(output, three, rows).map(all)).toEqual([
      {
        y: [
          [2, 2],
          [1, 2, 3, 4],
        ],
      },
      {
        y: [
          [1, 3],
          [5, 6, 7],
        ],
      },
      { y: [[1, 1], [8]] },
    ]);
  });

  it("rejects outputs too short to cut back", () => {
    const cuts = [{ name: "y", sourceInput: "x" }];
    const output = request({ y: ones(4, 2) });
    expect(thrownText(() => layout([x], [y], padded({ cuts })).split(output, three, rows))).toBe(
      "INTERNAL model 'm' returned output 'y' with shape [1,2], expected at least [1,3]",
    );
  });

  it("gives each request whole shape tensors, and other outputs by rows", () => {
    const size = { name: "size", dtype: "FP32", shape: [2], isShapeTensor: true } as const;
    const output = request({ y: fp32([2, 1], [1, 2]), size: fp32([2], [4, 5]) });
    const split = layout([ordinary], [y, size]).split(
      output,
      [request({ z: ones(1, 1) }), request({ z: ones(1, 1) })],
      [1, 1],
    );
    expect(split.map(all)).toEqual([
      { y: [[1, 1], [1]], size: [[2], [4, 5]] },
      { y: [[1, 1], [2]], size: [[2], [4, 5]] },
    ]);
  });
});
