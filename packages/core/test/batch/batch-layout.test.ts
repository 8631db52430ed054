import {
  DATA_TYPES,
  type DataType,
  type ModelConfig,
  type Tensor,
  type TensorSpec,
  TritonError,
} from "@tritonjs/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BatchLayout, type PaddingRules } from "../../src/batch/batch-layout.js";
import { mergeInputs, splitOutputs, type Tensors } from "../../src/batch/batch-tensors.js";
import { EqualInputsRule, Payload } from "../../src/batch/payload.js";
import { modelConfig } from "../support/model-config.js";
import { queuedRequest, requestWith, thrownText } from "../support/requests.js";
import { bits, fp32, ones, tensors } from "../support/tensors.js";

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

/** Requests with two inputs each, of one random row shape and random numbers of rows. */
function requestsOf(datatype: DataType): fc.Arbitrary<Tensors[]> {
  const rowShape = fc.array(fc.nat({ max: 3 }), { maxLength: 2 });
  const rowCounts = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 6 });
  return fc
    .tuple(rowShape, rowCounts)
    .chain(([shape, counts]) =>
      fc.tuple(
        ...counts.map((rows) => fc.tuple(tensors(datatype, [rows, ...shape]), tensors("INT64", [rows, 1]))),
      ),
    )
    .map((requests) =>
      requests.map(
        ([a, b]) =>
          new Map([
            ["a", a],
            ["b", b],
          ]),
      ),
    );
}

const bitsOf = (request: Tensors) => [...request].map(([name, tensor]) => [name, bits(tensor)]);

const rowsOf = (request: Tensors) => request.get("b")!.shape[0]!;

describe("merging requests and splitting the batch", () => {
  it.each(DATA_TYPES)("returns each %s request bit for bit, whatever its rows", (datatype) => {
    fc.assert(
      fc.property(requestsOf(datatype), (requests) => {
        const before = requests.map(bitsOf);
        const rows = requests.map(rowsOf);
        const merged = mergeInputs(requests);
        const total = rows.reduce((sum, n) => sum + n, 0);
        for (const tensor of merged.values()) expect(tensor.shape[0]).toBe(total);
        expect(splitOutputs(merged, rows).map(bitsOf)).toEqual(before);
      }),
      { numRuns: 60 },
    );
  });
});

describe("a merged batch", () => {
  it("owns its memory when it has several requests", () => {
    const requests = [1, 2].map((value): Tensors => new Map([["a", fp32([1, 2], [value, value])]]));
    (mergeInputs(requests).get("a")!.elements as Float32Array).fill(9);
    expect(requests.map((request) => [...(request.get("a")!.elements as Float32Array)])).toEqual([
      [1, 1],
      [2, 2],
    ]);
  });

  it("rejects requests with different sets of inputs", () => {
    const [a, b] = ["a", "b"].map((name): Tensors => new Map([[name, fp32([1, 1], [1])]]));
    const both: Tensors = new Map([...a!, ...b!]);
    for (const requests of [
      [a!, b!],
      [a!, both],
      [both, a!],
    ]) {
      expect(() => mergeInputs(requests)).toThrow("Cannot batch requests with different set of inputs keys");
    }
  });

  it("is the request itself when there is only one", () => {
    const request: Tensors = new Map([["a", fp32([1, 2], [1, 2])]]);
    expect(mergeInputs([request])).toBe(request);
  });
});

describe("a split batch", () => {
  it("gives each request a view that shows no bytes of its neighbours", () => {
    const outputs: Tensors = new Map([["y", fp32([3, 1], [1, 2, 3])]]);
    const parts = splitOutputs(outputs, [1, 2]);
    expect(parts.map((part) => part.get("y")!.bytes.byteLength)).toEqual([4, 8]);
    expect(parts.map((part) => part.get("y")!.shape)).toEqual([
      [1, 1],
      [2, 1],
    ]);
  });
});

describe("a payload", () => {
  it("counts the rows of its requests and keeps the oldest waiting time", () => {
    const payload = new Payload();
    payload.add(queuedRequest(2, 7));
    payload.add(queuedRequest(3, 5));
    expect([payload.batchSize, payload.oldestQueueStart]).toEqual([5, 5]);
  });

  it("drops a cancelled request and reports when the last one has left", () => {
    const payload = new Payload();
    const [first, second] = [queuedRequest(2), queuedRequest(3)];
    let emptied = 0;
    payload.onEmpty = () => emptied++;
    payload.add(first);
    payload.add(second);
    first.cancel();
    expect([payload.requests, payload.batchSize, emptied]).toEqual([[second], 3, 0]);
    second.cancel();
    expect([payload.requests, payload.batchSize, emptied]).toEqual([[], 0, 1]);
  });

  it("keeps executing requests, even cancelled ones", () => {
    const payload = new Payload();
    const request = queuedRequest(2);
    payload.add(request);
    request.startExecution();
    request.cancel();
    expect(payload.requests).toEqual([request]);
  });

  it("takes over the requests of another payload", () => {
    const [payload, other] = [new Payload(), new Payload()];
    const [first, second] = [queuedRequest(1, 3), queuedRequest(2, 1)];
    payload.add(first);
    other.add(second);
    payload.absorb(other);
    expect([payload.requests, payload.batchSize, payload.oldestQueueStart]).toEqual([[first, second], 3, 1]);
    expect([other.requests, other.batchSize]).toEqual([[], 0]);
    second.cancel();
    expect(payload.batchSize).toBe(1);
  });

  it("fails all its requests with its own error", () => {
    const outcomes: unknown[] = [];
    const payload = new Payload();
    for (let i = 0; i < 3; i++) {
      payload.add(requestWith({ x: ones(1, 2) }, { onResponse: (outcome) => outcomes.push(outcome) }));
    }
    const error = new TritonError("UNAVAILABLE", "gone");
    payload.fail(error);
    expect(outcomes).toEqual([error, error, error]);
    expect(payload.requests).toEqual([]);
  });
});

describe("required equal inputs", () => {
  const rule = (...inputs: readonly TensorSpec[]) => new EqualInputsRule(modelConfig({ inputs }));

  const x = (shape: number[], optional = false): TensorSpec => ({
    name: "x",
    dtype: "FP32",
    shape,
    optional,
  });

  const z = (shape: number[], optional = false): TensorSpec => ({
    name: "z",
    dtype: "FP32",
    shape,
    optional,
  });

  const inputs = (tensors: Record<string, Tensor>) => new Map(Object.entries(tensors));

  describe("the inputs that must be equal in a batch", () => {
    it("are none when all dimensions are fixed, because validation has checked them", () => {
      const fixed = rule(x([2, 3]), z([4]));
      expect(fixed.compares).toBe(false);
      expect(fixed.startWith(inputs({ x: ones(1, 2, 3) }))).toBeUndefined();
    });

    it("are those with a variable dimension, compared by shape without the rows", () => {
      const required = rule(x([-1]), z([3])).startWith(inputs({ x: ones(1, 5), z: ones(1, 3) }))!;
      expect(required.holdsFor(inputs({ x: ones(4, 5), z: ones(4, 3) }))).toBe(true);
      expect(required.holdsFor(inputs({ x: ones(1, 6), z: ones(1, 3) }))).toBe(false);
    });

    it("exclude inputs that allow ragged batches", () => {
      const config = modelConfig({ inputs: [x([-1])] });
      const ragged = new EqualInputsRule({
        ...config,
        input: config.input.map((input) => ({ ...input, allowRaggedBatch: true })),
      });
      expect(ragged.compares).toBe(false);
    });

    it("include shape tensors, compared by content", () => {
      const config = modelConfig({ inputs: [x([2])] });
      const shapes = new EqualInputsRule({
        ...config,
        input: config.input.map((input) => ({ ...input, isShapeTensor: true })),
      });
      const required = shapes.startWith(inputs({ x: fp32([2], [1, 2]) }))!;
      expect(shapes.comparesShapes).toBe(true);
      expect(required.holdsFor(inputs({ x: fp32([2], [1, 2]) }))).toBe(true);
      expect(required.holdsFor(inputs({ x: fp32([2], [1, 3]) }))).toBe(false);
      expect(required.holdsFor(inputs({ x: fp32([1], [1]) }))).toBe(false);
    });

    it("have the same names in all requests when one input is optional", () => {
      const optional = rule(x([2]), z([2], true));
      expect([optional.compares, optional.comparesShapes]).toEqual([true, false]);
      const both = optional.startWith(inputs({ x: ones(1, 2), z: ones(1, 2) }))!;
      expect(both.holdsFor(inputs({ z: ones(1, 2), x: ones(1, 2) }))).toBe(true);
      expect(both.holdsFor(inputs({ x: ones(1, 2) }))).toBe(false);
      const one = optional.startWith(inputs({ x: ones(1, 2) }))!;
      expect(one.holdsFor(inputs({ x: ones(1, 2), z: ones(1, 2) }))).toBe(false);
    });

    it("differ when requests have the same number of other optional inputs", () => {
      const optional = rule(x([-1], true), z([-1], true));
      const onlyX = optional.startWith(inputs({ x: ones(1, 2) }))!;
      expect(onlyX.holdsFor(inputs({ z: ones(1, 2) }))).toBe(false);
      expect(onlyX.holdsFor(inputs({ x: ones(1, 3) }))).toBe(false);
      expect(onlyX.holdsFor(inputs({ x: ones(1, 2) }))).toBe(true);
    });
  });
});
