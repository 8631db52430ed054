import { mkdtempSync, rmSync, truncateSync, unlinkSync, writeFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { tensorflow } from "@tritonjs/backends/tensorflow";
import { Triton } from "@tritonjs/core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { thrownBy } from "../../../../test/support/outcome.js";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";
import { graphDescription, type ModelJson, tensorDataType } from "../../src/tensorflow/model-json.js";
import { describeSavedModel, readFrozenGraph, readSavedModel } from "../../src/tensorflow/saved-model.js";
import { findRuntime, restoreOldUtilities } from "../../src/tensorflow/tensorflow-runtime.js";
import {
  constant,
  DT,
  type FunctionFile,
  floats,
  graphFile,
  int32,
  node,
  type SavedModelFile,
  savedModelFiles,
} from "./saved-model-files.js";

describe("SavedModels", () => {
  let directory: string;

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "tritonjs-saved-model-"));
  });

  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  async function write(model: SavedModelFile): Promise<void> {
    for (const [path, bytes] of savedModelFiles(model)) {
      await mkdir(dirname(join(directory, path)), { recursive: true });
      await writeFile(join(directory, path), bytes);
    }
  }

  const scale: FunctionFile = {
    name: "__inference_scale_1",
    inputs: { x: DT.FLOAT, kernel_resource: DT.RESOURCE },
    nodes: [
      node("ReadVariableOp", "ReadVariableOp", ["kernel_resource"], { dtype: { type: DT.FLOAT } }),
      node("product", "Mul", ["x", "ReadVariableOp:value:0"], { T: { type: DT.FLOAT } }),
      node("Identity", "Identity", ["product:z:0", "^ReadVariableOp"], { T: { type: DT.FLOAT } }),
    ],
    outputs: { result: "Identity:output:0" },
  };

  const x = { name: "serving_x:0", dtype: DT.FLOAT, shape: [-1, 2] };

  /** `y = x * kernel`, as TensorFlow 2 saves it. */
  function scaling(more: Partial<SavedModelFile> = {}): SavedModelFile {
    return {
      nodes: [
        node("serving_x", "Placeholder", [], { dtype: { type: DT.FLOAT }, shape: { shape: [-1, 2] } }),
        node("kernel", "VarHandleOp", [], { shared_name: { s: "layer/kernel" }, dtype: { type: DT.FLOAT } }),
        node("call", "StatefulPartitionedCall", ["serving_x", "kernel"], { f: { func: scale.name } }),
      ],
      functions: [scale],
      signatures: {
        serving_default: {
          inputs: { x },
          outputs: { y: { name: "call:0", dtype: DT.FLOAT, shape: [-1, 2] } },
        },
      },
      variables: { "layer/kernel": floats([2], [3, 4]) },
      ...more,
    };
  }

  const read = () => {
    const { json, weightSpecs, weightData } = readSavedModel(directory, "serving_default");
    const { node: nodes } = json.content.modelTopology as {
      node: { name: string; op: string; input: string[] }[];
    };
    const { outputs } = json.signature;
    return {
      nodes: nodes.map(({ name, op, input }) => `${name} ${op}(${input})`),
      outputs,
      weightSpecs,
      weightData,
    };
  };

  const numbers = ({ weightData }: ReturnType<typeof read>) => [...new Float32Array(weightData)];

  describe("a SavedModel", () => {
    it("becomes a graph without calls and variables", async () => {
      await write(scaling());
      const file = read();
      expect(file.nodes).toEqual([
        "serving_x Placeholder()",
        "call/product Mul(serving_x,variable/kernel)",
        "variable/kernel Const()",
      ]);
      expect(file.outputs).toMatchObject({ y: { name: "call/product" } });
      expect(file.weightSpecs).toEqual([{ name: "variable/kernel", shape: [2], dtype: "float32" }]);
      expect(numbers(file)).toEqual([3, 4]);
      expect(describeSavedModel(directory, "serving_default")).toEqual({
        inputs: [{ name: "x", dtype: "FP32", shape: [-1, 2] }],
        outputs: [{ name: "y", dtype: "FP32", shape: [-1, 2] }],
      });
    });

    it("is read with a compressed index", async () => {
      const kernels = Object.fromEntries(
        Array.from({ length: 40 }, (_, i) => [`layer/kernel_${i}`, floats([1], [i])]),
      );
      await write(
        scaling({ compressed: true, variables: { ...kernels, "layer/kernel": floats([2], [5, 6]) } }),
      );
      expect(numbers(read())).toEqual([5, 6]);
    });

    const restoring: FunctionFile = {
      name: "__inference__traced_restore_2",
      inputs: { file_prefix: DT.STRING, assign_kernel: DT.RESOURCE },
      nodes: [
        constant("names", { dtype: DT.STRING, shape: [2], values: ["other", "layers/0/kernel/VALUE"] }),
        node("RestoreV2", "RestoreV2", ["file_prefix", "names:output:0", "names:output:0"]),
        node("Identity_1", "Identity", ["RestoreV2:tensors:1"]),
        node("Assign", "AssignVariableOp", ["assign_kernel", "Identity_1:output:0"]),
      ],
      outputs: { prefix: "file_prefix" },
    };
    const variables = { "layers/0/kernel/VALUE": floats([2], [7, 8]), other: floats([1], [0]) };
    const restored = (handle: string) =>
      node("restore", "StatefulPartitionedCall", ["saver_filename", handle], { f: { func: restoring.name } });
    const prefix = node("saver_filename", "Placeholder", [], { dtype: { type: DT.STRING } });

    it("has the variables that its restoring function assigns", async () => {
      const model = scaling({ functions: [scale, restoring], variables, restore: "restore" });
      await write({ ...model, nodes: [...model.nodes, prefix, restored("kernel")] });
      expect(numbers(read())).toEqual([7, 8]);
    });

    it("has the variables whose copies Keras 3 saves", async () => {
      const model = scaling({ functions: [scale, restoring], variables, restore: "restore" });
      const copy = [
        node("Variable_7", "VarHandleOp", [], { shared_name: { s: "Variable_7" } }),
        node("Variable_7/Initializer/ReadVariableOp", "ReadVariableOp", ["kernel"]),
      ];
      await write({ ...model, nodes: [...model.nodes, prefix, ...copy, restored("Variable_7")] });
      expect(numbers(read())).toEqual([7, 8]);
    });

    it("is refused when its files are broken or it needs TensorFlow", async () => {
      const refusal = () => thrownBy(() => readSavedModel(directory, "serving_default"));
      const data = join(directory, "variables", "variables.data-00000-of-00001");
      const index = join(directory, "variables", "variables.index");
      await write(scaling());
      expect(thrownBy(() => readSavedModel(directory, "predict"))).toMatch(
        /unknown signature 'predict' of the SavedModel '.*': expected one of \[serving_default\]/,
      );
      truncateSync(data, 5);
      expect(refusal()).toMatch(
        /variable 'layer\/kernel' of the checkpoint '.*': expected 8 bytes in '.*', got 5/,
      );
      unlinkSync(data);
      expect(refusal()).toMatch(/cannot read the variables '.*data-00000-of-00001': it is missing/);
      writeFileSync(index, "no table");
      expect(refusal()).toMatch(/variables\.index' is not the index of a checkpoint: it has only 8 bytes/);
      writeFileSync(index, Buffer.alloc(100));
      expect(refusal()).toMatch(/it does not end with a table's mark/);
      unlinkSync(index);
      expect(refusal()).toMatch(/cannot read the variables '.*index': it is missing/);
      await write(scaling({ variables: { other: floats([1], [1]) } }));
      expect(refusal()).toMatch(/expected its variable 'kernel' in the checkpoint, got none/);
      truncateSync(join(directory, "saved_model.pb"), 200);
      expect(refusal()).toMatch(/expected a protobuf message 'SavedModel', got 200 bytes that end early/);
      await write(scaling({ functions: [] }));
      expect(refusal()).toMatch(/expected a function '__inference_scale_1', which node 'call' calls/);
      const table = node("table", "HashTableV2", [], { key_dtype: { type: DT.INT64 } });
      const find = node("call", "LookupTableFindV2", ["table", "serving_x", "serving_x"]);
      await write(scaling({ nodes: [...scaling().nodes.slice(0, 1), table, find] }));
      expect(refusal()).toMatch(/node 'table' has a table \(HashTableV2\), which only TensorFlow can fill/);
      await write(scaling({ nodes: [node("call", "Relu", ["absent"])] }));
      expect(refusal()).toMatch(/is not a whole graph: expected a node 'absent', which another one takes/);
    });
  });

  describe("a frozen graph", () => {
    const path = () => join(directory, "model.graphdef");

    it("has its placeholders and its last nodes", () => {
      const nodes = [
        node("x", "Placeholder", [], { dtype: { type: DT.FLOAT }, shape: { shape: [-1, 2] } }),
        constant("two", floats([], [2])),
        constant("axis", int32(-1)),
        node("double", "Mul", ["x", "two"], { T: { type: DT.FLOAT } }),
        node("y", "Identity", ["double"], { T: { type: DT.FLOAT } }),
        node("best", "ArgMax", ["double", "axis"], {
          T: { type: DT.FLOAT },
          output_type: { type: DT.INT64 },
        }),
      ];
      writeFileSync(path(), graphFile({ nodes }));
      const { description, json } = readFrozenGraph(path());
      expect(description).toMatchObject({
        inputs: [{ name: "x", dtype: "FP32", shape: [-1, 2] }],
        outputs: [
          { name: "y", dtype: "FP32", rankUnknown: true },
          { name: "best", dtype: "INT64", rankUnknown: true },
        ],
      });
      expect(json.signature.outputs).toMatchObject({ y: { name: "double" }, best: { name: "best" } });
    });

    it("keeps attributes that are written with the default of their type", () => {
      const attributes = { sorted: { b: false }, k: { i: 0 }, pad: { s: "" }, alpha: { f: 0 } };
      const nodes = [
        node("x", "Placeholder", [], { dtype: { type: DT.FLOAT }, shape: { shape: [-1, 2] } }),
        node("y", "TopK", ["x"], { T: { type: DT.FLOAT }, ...attributes }),
      ];
      writeFileSync(path(), graphFile({ nodes }));
      const { modelTopology } = readFrozenGraph(path()).json.content as {
        modelTopology: { node: { name: string; attr: object }[] };
      };
      expect(modelTopology.node.find(({ name }) => name === "y")!.attr).toMatchObject(attributes);
    });

    it("is refused with variables, without nodes and when it is another file", () => {
      const refusal = () => thrownBy(() => readFrozenGraph(path()));
      writeFileSync(path(), graphFile({ nodes: [node("v", "VariableV2"), node("y", "Relu", ["v"])] }));
      expect(refusal()).toMatch(/expected constants only, got the variable 'v': freeze it first/);
      writeFileSync(path(), "");
      expect(refusal()).toMatch(/the frozen graph '.*': expected nodes, got none/);
      writeFileSync(path(), "this is a text and no graph");
      expect(refusal()).toMatch(/cannot read the frozen graph/);
    });
  });
});

const shape = { dim: [{ size: "-1" }, { size: "-1" }] };

/** A graph in which each input goes through one operation to an output with the operation's name. */
function graphOf(rows: readonly (readonly [input: string, type: string, op: string, twice?: boolean])[]) {
  const tensor = (name: string, dtype: string) => ({ name: `${name}:0`, dtype, tensorShape: shape });
  return JSON.stringify({
    format: "graph-model",
    signature: {
      inputs: Object.fromEntries(rows.map(([input, type]) => [input, tensor(input, type)])),
      outputs: Object.fromEntries(rows.map(([, type, op]) => [op, tensor(op, type)])),
    },
    modelTopology: {
      versions: { producer: 1 },
      node: rows.flatMap(([input, type, op, twice]) => [
        { name: input, op: "Placeholder", input: [], attr: { dtype: { type }, shape: { shape } } },
        { name: op, op, input: twice ? [input, input] : [input], attr: { T: { type } } },
      ]),
    },
    weightsManifest: [],
  });
}

const files = {
  "types/model.json": graphOf([
    ["flags", "DT_BOOL", "LogicalNot"],
    ["counts", "DT_INT32", "AddV2", true],
    ["words", "DT_STRING", "Identity"],
  ]),
  "squares/model.json": graphOf([["x", "DT_FLOAT", "Square"]]),
};

describe.each(["wasm", "cpu"] as const)("TensorFlow.js on %s", (runtime) => {
  let folder: RepositoryOnDisk;
  let triton: Triton;

  beforeAll(async () => {
    folder = await RepositoryOnDisk.create(files);
    triton = new Triton();
    for (const modelName of ["types", "squares"]) {
      const model = join(folder.path, modelName, "model.json");
      triton.bind({
        modelName,
        inferFunc: tensorflow({ model, runtime }),
        config: { batcher: { maxQueueDelayMicroseconds: 1000 } },
      });
    }
  });

  afterAll(async () => {
    await triton.close();
    await folder[Symbol.asyncDispose]();
  });

  const given = {
    flags: [
      [true, false, true],
      [false, false, true],
    ],
    counts: [
      [1, -2],
      [2 ** 30 - 1, -(2 ** 30)],
    ],
    words: [
      ["", "naïve", "日本語", "\u0000"],
      ["a", "b", "c", "d"],
    ],
  };

  it("accepts and returns booleans, integers and strings in the shapes of the requests", async () => {
    const { LogicalNot, AddV2, Identity } = await triton.infer("types", given);
    expect([LogicalNot!.dtype, AddV2!.dtype, Identity!.dtype]).toEqual(["uint8", "int32", "array"]);
    expect([LogicalNot!.shape, AddV2!.shape, Identity!.shape]).toEqual([
      [2, 3],
      [2, 2],
      [2, 4],
    ]);
    expect([...LogicalNot!.data].map(Boolean)).toEqual([false, true, false, true, true, false]);
    expect([...AddV2!.data]).toEqual([2, -4, 2 ** 31 - 2, -(2 ** 31)]);
    expect([...Identity!.data].map((word) => Buffer.from(word as Uint8Array).toString())).toEqual(
      given.words.flat(),
    );
  });

  it("runs two models at once, each with batches of its own shapes", async () => {
    const asked = Array.from({ length: 24 }, (_, i) => i);
    const answers = await Promise.all(
      asked.map(async (i) => {
        const row = Array.from({ length: 1 + (i % 3) }, (_, at) => i + at);
        const { Square } = await triton.infer("squares", { x: [row] });
        const { AddV2 } = await triton.infer("types", { ...given, counts: [row, row] });
        return [[...Square!.data], [...AddV2!.data], row];
      }),
    );
    for (const [squares, sums, row] of answers) {
      expect(squares).toEqual(row!.map((x) => Number(x) ** 2));
      expect(sums).toEqual([...row!, ...row!].map((x) => 2 * Number(x)));
    }
  });
});

const needs = { runtime: undefined, onGpu: false };

const all = ["tfjs", "tfjs-backend-wasm", "tfjs-node", "tfjs-node-gpu"];

function choose(installed: readonly string[], more: Partial<Parameters<typeof findRuntime>[0]> = {}): string {
  try {
    return findRuntime({ ...needs, ...more }, (name) => installed.includes(name.replace("@tensorflow/", "")));
  } catch (error) {
    return (error as Error).message;
  }
}

describe("the runtime of TensorFlow", () => {
  it("restoreOldUtilities gives tfjs-node the functions that Node has removed", () => {
    const util: Record<string, unknown> = {};
    restoreOldUtilities(util);
    const { isNullOrUndefined, isArray } = util as Record<string, (value: unknown) => boolean>;
    expect([undefined, null, 0, []].map((value) => isNullOrUndefined!(value))).toEqual([
      true,
      true,
      false,
      false,
    ]);
    expect(isArray!([])).toBe(true);
    const kept = () => "its own";
    const newer = { isArray: kept };
    restoreOldUtilities(newer);
    expect(newer.isArray).toBe(kept);
  });
});

describe("the runtime chosen for a TensorFlow model", () => {
  it("is the fastest one installed", () => {
    expect(choose(all)).toBe("tfjs-node");
    expect(choose(["tfjs", "tfjs-node-gpu"])).toBe("tfjs-node-gpu");
    expect(choose(["tfjs", "tfjs-backend-wasm"])).toBe("wasm");
    expect(choose(["tfjs"])).toBe("cpu");
    expect(choose(all, { runtime: "cpu" })).toBe("cpu");
  });

  it("is tfjs-node-gpu on a GPU", () => {
    expect(choose(all, { onGpu: true })).toBe("tfjs-node-gpu");
    expect(choose(["tfjs", "tfjs-node"], { onGpu: true })).toBe(
      "TensorFlow.js is not installed: install @tensorflow/tfjs-node-gpu next to @tritonjs/backends",
    );
    expect(choose(all, { runtime: "wasm", onGpu: true })).toBe(
      "TensorFlow's runtime for an instance on a GPU: expected tfjs-node-gpu, got 'wasm'",
    );
  });
});

describe("the description of a GraphModel", () => {
  const json = (node: object | object[], signature = {}): ModelJson => ({
    path: "model.json",
    kind: "graph",
    weightsManifest: [],
    signature,
    content: { modelTopology: { node: [node].flat() } },
  });
  const placeholder = {
    name: "x",
    op: "Placeholder",
    attr: { dtype: { type: 9 }, shape: { shape: { dim: [{ size: -1 }, { size: "3" }] } } },
  };

  it("without a signature, has its placeholders as inputs and its last nodes as outputs", () => {
    const node = (name: string, op: string, input: readonly string[], attr = {}) => ({
      name,
      op,
      input,
      attr,
    });
    const nodes = [
      placeholder,
      node("unused", "Const", [], { dtype: { type: 1 } }),
      node("parts", "Split", ["x"], { T: { type: 9 } }),
      node("as float", "Cast", ["parts:1"], { SrcT: { type: 9 }, DstT: { type: "DT_FLOAT" } }),
      node("best", "ArgMax", ["as float", "^parts"], { T: { type: 1 }, output_type: { type: 3 } }),
      node("large", "Greater", ["as float"], { T: { type: 1 } }),
    ];
    expect(graphDescription(json(nodes))).toEqual({
      inputs: [{ name: "x", dtype: "INT64", shape: [-1, 3] }],
      outputs: [
        { name: "best", dtype: "INT32", shape: [], rankUnknown: true },
        { name: "large", dtype: "BOOL", shape: [], rankUnknown: true },
      ],
    });
  });

  it("rejects types and unknown ranks that the protocol does not have", () => {
    expect(() => tensorDataType("DT_COMPLEX64")).toThrow(
      "the protocol cannot carry TensorFlow's type DT_COMPLEX64",
    );
    const open = { ...placeholder, attr: { ...placeholder.attr, shape: { shape: { unknownRank: true } } } };
    expect(() => graphDescription(json(open))).toThrow("the rank of 'x' is unknown");
  });
});
