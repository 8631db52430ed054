import { mkdtempSync, rmSync, truncateSync, unlinkSync, writeFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { thrownBy } from "../../../../test/support/outcome.js";
import { describeSavedModel, readFrozenGraph, readSavedModel } from "../../src/tensorflow/saved-model.js";
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
      serving_default: { inputs: { x }, outputs: { y: { name: "call:0", dtype: DT.FLOAT, shape: [-1, 2] } } },
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
      node("best", "ArgMax", ["double", "axis"], { T: { type: DT.FLOAT }, output_type: { type: DT.INT64 } }),
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
