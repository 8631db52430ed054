import { type OnnxEngine, onnxruntime } from "@tritonjs/backends/onnxruntime";
import { InferenceServerClient as GrpcClient } from "@tritonjs/client/grpc";
import { InferenceServerClient as HttpClient } from "@tritonjs/client/http";
import { type TensorSpec, Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { http } from "@tritonjs/http";
import { toConfigDataType } from "@tritonjs/protocol";
import { repository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { describe, expect, it } from "vitest";
import {
  type OnnxElementType,
  type OnnxGraph,
  type OnnxNode,
  type OnnxTensor,
  onnxModel,
} from "../../../../examples/onnx-writer/onnx-writer.js";
import { outcomeOf, thrownBy } from "../../../../test/support/outcome.js";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";
import { encodeModel, type GraphMessage } from "../../src/onnx-graph/onnx-messages.js";
import { OnnxModel } from "../../src/onnx-graph/onnx-model.js";
import { bytesSource, messages } from "../../src/onnxruntime/onnx-file.js";

type Values = { readonly shape: readonly number[]; readonly data: Iterable<unknown>; toArray(): unknown };

const value = (name: string, elemType: OnnxElementType, dims: readonly (number | string)[]) => ({
  name,
  elemType,
  dims,
});

/** A graph whose initializers are inputs too. */
const graphOf = (
  [x, y]: readonly (readonly (number | string)[])[],
  tensor: OnnxTensor & { readonly elemType: OnnxElementType },
  nodes: readonly OnnxNode[],
  more: Partial<OnnxGraph> & { irVersion?: number; ofX?: OnnxElementType } = {},
) => {
  const { ofX = "FLOAT", ...rest } = more;
  return onnxModel({
    name: "defaults",
    opset: 17,
    inputs: [value("x", ofX, x!), value(tensor.name, tensor.elemType, tensor.dims)],
    outputs: [value("y", ofX, y!)],
    initializers: [tensor],
    nodes,
    ...rest,
  });
};

const add: OnnxNode = { op: "Add", inputs: ["x", "bias"], outputs: ["y"] };
const ten = { name: "bias", dims: [1], data: Float32Array.of(10), elemType: "FLOAT" } as const;
const biased = graphOf([["n"], ["n"]], ten, [add]);

const X = { name: "x", dtype: "FP32", shape: [-1] } as const;
const BIAS = { name: "bias", dtype: "FP32", shape: [1], optional: true } as const;
const Y = { name: "y", dtype: "FP32", shape: [-1] } as const;
const CONFIG = `input [
    { name: "x" data_type: TYPE_FP32 dims: [ -1 ] },
    { name: "bias" data_type: TYPE_FP32 dims: [ 1 ] optional: true }
  ]
  output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]`;

const ENGINES: readonly OnnxEngine[] = ["worker", "native", "wasm"];

/** The server of a repository. */
async function served<T>(
  files: Record<string, string | Uint8Array>,
  use: (triton: Triton, path: string) => Promise<T>,
) {
  await using models = await RepositoryOnDisk.create(files);
  const logger = { error() {}, warn() {}, info() {}, debug() {} };
  await using triton = new Triton({
    logger,
    extensions: [repository({ modelRepository: models.path, exitOnError: false })],
  });
  await triton.ready().catch(() => {});
  return await use(triton, models.path);
}

const configured = (config: string, engine = "worker") => ({
  "m/config.pbtxt": `backend: "onnxruntime" instance_group [ { count: 1 } ] ${config} parameters { key: "engine" value { string_value: "${engine}" } }`,
});

const k = { name: "k", dims: [1], data: BigInt64Array.of(1n), elemType: "INT64" } as const;
const place = (offset: number) => ({ external: { location: "data/weights.bin", offset } });
const weight = { name: "w", dims: [1], data: Float32Array.of(2), ...place(0) };
const far = { ...ten, name: "far", ...place(4) };

/** `sum` = `x` + `bias`, `most` = the `k` largest of `x`, and `line` = 2 `x` + `far`, whose weights are in another file. */
const defaults = onnxModel({
  name: "defaults",
  opset: 17,
  inputs: [
    value("x", "FLOAT", ["n"]),
    value("bias", "FLOAT", [1]),
    value("k", "INT64", [1]),
    value("far", "FLOAT", [1]),
  ],
  outputs: [value("sum", "FLOAT", ["n"]), value("most", "FLOAT", ["k"]), value("line", "FLOAT", ["n"])],
  initializers: [ten, k, weight, far],
  nodes: [
    { op: "Add", inputs: ["x", "bias"], outputs: ["sum"] },
    { op: "TopK", inputs: ["x", "k"], outputs: ["most", "at"] },
    { op: "Mul", inputs: ["x", "w"], outputs: ["p"] },
    { op: "Add", inputs: ["p", "far"], outputs: ["line"] },
  ],
});
const DEFAULTS = `input [
    { name: "x" data_type: TYPE_FP32 dims: [ -1 ] },
    { name: "bias" data_type: TYPE_FP32 dims: [ 1 ] optional: true },
    { name: "k" data_type: TYPE_INT64 dims: [ 1 ] optional: true },
    { name: "far" data_type: TYPE_FP32 dims: [ 1 ] optional: true }
  ]
  output [
    { name: "sum" data_type: TYPE_FP32 dims: [ -1 ] },
    { name: "most" data_type: TYPE_FP32 dims: [ -1 ] },
    { name: "line" data_type: TYPE_FP32 dims: [ -1 ] }
  ]`;

it.each(ENGINES)(
  "inputs have their defaults, or the value of the request, on the engine %s",
  async (engine) => {
    const files = {
      ...configured(DEFAULTS, engine),
      "m/1/model.onnx": defaults,
      "m/1/data/weights.bin": new Uint8Array(Float32Array.of(2, 10).buffer),
    };
    await served(files, async (triton) => {
      const ask = async (more: object = {}) => {
        const { sum, most, line } = await triton.infer("m", { x: [3, 9, 5], ...more });
        return [sum, most, line].map((output) => [...(output!.data as Float32Array)]);
      };
      const plain = [[13, 19, 15], [9], [16, 28, 20]];
      const given = [
        ask(),
        ask({ bias: [100] }),
        ask({ k: [2n] }),
        ask({ far: [1] }),
        ask({ bias: [0] }),
        ask(),
      ];
      expect(await Promise.all(given)).toEqual([
        plain,
        [[103, 109, 105], [9], [16, 28, 20]],
        [
          [13, 19, 15],
          [9, 5],
          [16, 28, 20],
        ],
        [[13, 19, 15], [9], [7, 19, 11]],
        [[3, 9, 5], [9], [16, 28, 20]],
        plain,
      ]);
    });
  },
);

describe("an input with a default", () => {
  it("is one over HTTP and gRPC, and in the metadata of the model", async () => {
    const files = { ...configured(CONFIG), "m/1/model.onnx": biased };
    await served(files, async (triton) => {
      const { addresses } = await triton.serve({ frontends: [http({ port: 0 }), grpc({ port: 0 })] });
      for (const client of [new HttpClient(addresses.http!.url), new GrpcClient(addresses.grpc!.url)]) {
        const sums = async (more: Readonly<Record<string, Float32Array>>) =>
          (
            await client.infer("m", { inputs: { x: Float32Array.of(1, 2, 3), ...more } })
          ).outputs.y!.toArray();
        expect(await Promise.all([sums({}), sums({ bias: Float32Array.of(100) })])).toEqual([
          [11, 12, 13],
          [101, 102, 103],
        ]);
        await client.close();
      }
      const { inputs } = serviceOf(triton).modelMetadata("m", "");
      expect(inputs.map(({ name }) => name)).toEqual(["x", "bias"]);
      expect(serviceOf(triton).modelConfig("m", "").input[1]).toMatchObject({ name: "bias", optional: true });
    });
  });

  const FORMS: readonly (readonly [
    string,
    Uint8Array,
    Partial<TensorSpec>,
    unknown,
    unknown,
    unknown,
    unknown,
  ])[] = [
    [
      "a scalar",
      graphOf([["n"], ["n"]], { ...ten, dims: [] }, [add]),
      {},
      [1, 2],
      [11, 12],
      [100],
      [101, 102],
    ],
    [
      "half floats",
      graphOf([["n"], ["n"]], { ...ten, elemType: "FLOAT16", data: Uint16Array.of(0x4900) }, [add], {
        ofX: "FLOAT16",
      }),
      { dtype: "FP16" },
      [1, 2.5],
      [11, 12.5],
      [100],
      [101, 102.5],
    ],
    [
      "texts",
      graphOf(
        [["n"], ["m"]],
        { name: "bias", elemType: "STRING", dims: [1], data: ["ä"] },
        [{ ...add, op: "Concat", attributes: { axis: { int: 0 } } }],
        { ofX: "STRING" },
      ),
      { dtype: "BYTES" },
      ["x"],
      ["x", "ä"],
      ["b"],
      ["x", "b"],
    ],
    [
      "flags",
      graphOf(
        [["n"], ["n"]],
        { name: "bias", elemType: "BOOL", dims: [1], data: Uint8Array.of(1) },
        [{ ...add, op: "And" }],
        { ofX: "BOOL" },
      ),
      { dtype: "BOOL" },
      [true, false],
      [true, false],
      [false],
      [false, false],
    ],
    [
      "an old file, which lists all weights as inputs",
      graphOf([["n"], ["n"]], ten, [add], { irVersion: 3 }),
      {},
      [1],
      [11],
      [2],
      [3],
    ],
    [
      "a graph inside of a node",
      graphOf(
        [["n"], ["n"]],
        ten,
        [
          { op: "ReduceMax", inputs: ["x"], outputs: ["most"], attributes: { keepdims: { int: 0 } } },
          { op: "Greater", inputs: ["most", "zero"], outputs: ["positive"] },
          {
            op: "If",
            inputs: ["positive"],
            outputs: ["y"],
            attributes: {
              then_branch: {
                graph: {
                  name: "then",
                  inputs: [],
                  outputs: [value("a", "FLOAT", ["n"])],
                  nodes: [{ ...add, outputs: ["a"] }],
                },
              },
              else_branch: {
                graph: {
                  name: "else",
                  inputs: [],
                  outputs: [value("b", "FLOAT", ["n"])],
                  nodes: [{ ...add, op: "Sub", outputs: ["b"] }],
                },
              },
            },
          },
        ],
        { initializers: [ten, { name: "zero", dims: [], data: Float32Array.of(0) }] },
      ),
      {},
      [1, 2],
      [11, 12],
      [100],
      [101, 102],
    ],
  ];
  it.each(["worker", "native"])("may be of any type and form, on the engine %s", async (engine) => {
    const files = FORMS.flatMap(([, file, type], i) => {
      const config = CONFIG.replaceAll("TYPE_FP32", toConfigDataType(type.dtype ?? "FP32"));
      const text = configured(config, engine)["m/config.pbtxt"];
      return [
        [`m${i}/config.pbtxt`, text],
        [`m${i}/1/model.onnx`, file],
      ];
    });
    await served(Object.fromEntries(files), async (triton) => {
      for (const [i, [what, , type, x, plain, bias, other]] of FORMS.entries()) {
        const decoded = async (given: Readonly<Record<string, unknown>>) => {
          const { y } = await triton.infer(`m${i}`, given as never);
          const values = (y as Values).toArray() as unknown[];
          return type.dtype === "BYTES"
            ? values.map((one) => Buffer.from(one as Uint8Array).toString())
            : values;
        };
        const found = [await decoded({ x }), await decoded({ x, bias }), await decoded({ x })];
        expect({ [what]: found }).toEqual({ [what]: [plain, other, plain] });
      }
    });
  });

  it("may be one of several, in a process of the instance", async () => {
    const scale = { name: "scale", dims: [1], data: Float32Array.of(2), elemType: "FLOAT" } as const;
    const file = onnxModel({
      name: "two",
      opset: 17,
      inputs: [value("x", "FLOAT", ["n"]), value("scale", "FLOAT", [1]), value("bias", "FLOAT", [1])],
      outputs: [value("y", "FLOAT", ["n"])],
      initializers: [scale, ten],
      nodes: [
        { op: "Mul", inputs: ["x", "scale"], outputs: ["p"] },
        { ...add, inputs: ["p", "bias"] },
      ],
    });
    await using triton = new Triton();
    const handle = triton.bind({
      modelName: "m",
      inputs: [X, { ...BIAS, name: "scale" }, BIAS],
      outputs: [Y],
      config: { instanceGroup: [{ isolation: "process" }] },
      inferFunc: onnxruntime({ model: file }),
    });
    const sums = async (more: object) => [...(await handle.infer({ x: [1, 2], ...more })).y.data];
    expect(await sums({})).toEqual([12, 14]);
    expect(await sums({ scale: [3] })).toEqual([13, 16]);
    expect(await sums({ bias: [1] })).toEqual([3, 5]);
    expect(await sums({ scale: [0], bias: [1] })).toEqual([1, 1]);
    expect(await sums({})).toEqual([12, 14]);
  });

  it("is not an input of a model without a configuration, or one that does not say 'optional'", async () => {
    await served({ "m/1/model.onnx": biased }, async (triton) => {
      expect(
        serviceOf(triton)
          .modelConfig("m", "")
          .input.map(({ name }) => name),
      ).toEqual(["x"]);
    });
    await using triton = new Triton();
    const handle = triton.bind({ modelName: "m", inferFunc: onnxruntime({ model: biased }) });
    expect(handle.metadata().inputs.map(({ name }) => name)).toEqual(["x"]);
    expect(await outcomeOf(handle.infer({ x: [[1]], bias: [1] } as never))).toMatch(/has no input 'bias'/);
  });

  /** The model with a changed graph, and with further bytes at the end of the graph. */
  const changed = (change: (graph: GraphMessage) => void, more: Uint8Array = new Uint8Array()) => {
    const { message } = OnnxModel.decode(biased);
    change(message.graph);
    const bytes = encodeModel(message);
    const [graph] = messages(bytesSource(bytes), 0, bytes.length, 7);
    const { start, end } = graph!;
    const header = field(7, bytes.subarray(start, end)).length - (end - start);
    const content = Buffer.concat([bytes.subarray(start, end), more]);
    return Buffer.concat([bytes.subarray(0, start - header), field(7, content), bytes.subarray(end)]);
  };
  const field = (number: number, content: Uint8Array): Uint8Array => {
    const length = [content.length & 0x7f, content.length >> 7];
    const size = content.length < 128 ? [content.length] : [length[0]! | 0x80, length[1]!];
    return Uint8Array.from([number * 8 + 2, ...size, ...content]);
  };
  const weightAlone = changed((graph) => {
    graph.input = graph.input.filter(({ name }) => name === "x");
  });
  const tensor = (name: string, type: number, raw: Uint8Array) =>
    Buffer.concat([Uint8Array.of(8, 1, 16, type), field(8, Buffer.from(name)), field(9, raw)]);
  const sparse = Buffer.concat([
    field(1, tensor("bias", 1, new Uint8Array(Float32Array.of(10).buffer))),
    field(2, tensor("", 7, new Uint8Array(8))),
    Uint8Array.of(24, 1),
  ]);
  const sparseDefault = changed(
    (graph) => {
      graph.initializer = [];
    },
    field(15, sparse),
  );
  const noDefault = onnxModel({
    name: "plain",
    opset: 17,
    inputs: [value("x", "FLOAT", ["n"]), value("bias", "FLOAT", [1])],
    outputs: [value("y", "FLOAT", ["n"])],
    nodes: [add],
  });
  const required = CONFIG.replace("optional: true", "");

  it("is refused by name", async () => {
    const cases: readonly (readonly [string, string, Uint8Array, string])[] = [
      ["without 'optional'", required, biased, "configuration expects 2 inputs, model provides 1"],
      ["of a required input", CONFIG, noDefault, "configuration expects 1 inputs, model provides 2"],
      [
        "of a weight that is not an input",
        CONFIG,
        weightAlone,
        "unexpected inference input 'bias', allowed inputs are: x",
      ],
      [
        "of a sparse weight",
        CONFIG,
        sparseDefault,
        "unexpected inference input 'bias', allowed inputs are: x",
      ],
      [
        "with a batch axis",
        `max_batch_size: 4 ${CONFIG}`,
        biased,
        "optional input 'bias' is not supported for models that support batching",
      ],
      [
        "of another type",
        CONFIG.replace(/TYPE_FP32(?= dims: \[ 1)/, "TYPE_FP64"),
        biased,
        "expects datatype TYPE_FP64 for input 'bias', model provides TYPE_FP32",
      ],
      [
        "of another shape",
        CONFIG.replace("dims: [ 1 ]", "dims: [ 2 ]"),
        biased,
        "the model expects 1 dimensions (shape [1]) but the model configuration specifies 1 dimensions (shape [2])",
      ],
      [
        "of a model in another precision",
        `${CONFIG} optimization { execution_accelerators { cpu_execution_accelerator [ { name: "cpu" parameters { key: "precision_mode" value: "INT8" } } ] } }`,
        biased,
        "precision_mode INT8: expected no optional input, because another form keeps no default, got 'bias'",
      ],
    ];
    const files = cases.flatMap(([, config, file], i) => [
      [`m${i}/config.pbtxt`, configured(config)["m/config.pbtxt"]],
      [`m${i}/1/model.onnx`, file],
    ]);
    await served(Object.fromEntries(files), async (triton) => {
      const rows = await serviceOf(triton).repositoryIndex(false);
      for (const [i, [what, , , reason]] of cases.entries()) {
        expect([what, rows.find(({ name }) => name === `m${i}`)?.reason]).toEqual([
          what,
          expect.stringContaining(reason),
        ]);
      }
    });
  });

  it("is refused in process by name", async () => {
    await using triton = new Triton();
    const bind = (inputs: readonly TensorSpec[], config = {}) =>
      thrownBy(() =>
        triton.bind({
          modelName: "m",
          inputs,
          outputs: [Y],
          config,
          inferFunc: onnxruntime({ model: biased }),
        }),
      );
    expect(bind([X, { ...BIAS, optional: false }])).toContain(
      "input 'bias' is not in the model file: expected one of 'x'",
    );
    expect(bind([X, { ...BIAS, name: "w" }])).toContain(
      "input 'w' is not in the model file: expected one of 'x'",
    );
    expect(bind([X, { ...BIAS, dtype: "FP64" }])).toContain("input 'bias': expected dtype FP32");
    expect(bind([X, BIAS], { maxBatchSize: 4 })).toContain(
      "optional input 'bias' is not supported for models that support batching",
    );
  });
});
