import { mkdtempSync, rmSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { tensorflow } from "@tritonjs/backends/tensorflow";
import { Triton } from "@tritonjs/core";
import { repository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { outcomeOf } from "../../../../test/support/outcome.js";
import { repositoryRoot } from "../../../../test/support/repository.js";
import { asFrozenGraph, asSavedModel, readGraphModel } from "./graph-model-to-saved-model.js";
import {
  constant,
  DT,
  type FunctionFile,
  floats,
  graphFile,
  int32,
  node,
  savedModelFiles,
} from "./saved-model-files.js";

const flowers = join(repositoryRoot, "examples", "tfjs-model", "models", "flowers-graph", "1");
const measures = [
  [5.1, 3.5, 1.4, 0.2],
  [7.7, 2.6, 6.9, 2.3],
  [6, 2.7, 5.1, 1.6],
];

let directory: string;
let triton: Triton;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "tritonjs-saved-model-"));
  triton = new Triton();
});
afterEach(async () => {
  await triton.close();
  rmSync(directory, { recursive: true, force: true });
});

async function write(files: ReadonlyMap<string, Uint8Array>, folder = ""): Promise<string> {
  for (const [path, bytes] of files) {
    const file = join(directory, folder, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, bytes);
  }
  return join(directory, folder);
}

const FLOAT = { T: { type: DT.FLOAT } };

/** The checked-in GraphModel, which the files are made from. */
const flowersModel = () => readGraphModel(join(flowers, "model.json"));

async function answerOf(name: string, path: string, inputs = { measures }): Promise<Record<string, unknown>> {
  const model = triton.bind({ modelName: name, inferFunc: tensorflow({ model: path, runtime: "cpu" }) });
  const answer = await model.infer(inputs);
  return Object.fromEntries(Object.entries(answer).map(([output, { data }]) => [output, [...data]]));
}

describe("a SavedModel without TensorFlow", () => {
  it.each([false, true])(
    "answers as the GraphModel that it was made from (compressed index: %s)",
    async (compressed) => {
      const path = await write(savedModelFiles(asSavedModel(flowersModel(), compressed)));
      const source = await answerOf("source", join(flowers, "model.json"));
      expect(await answerOf("saved", path)).toEqual(source);
      expect(source.kind).toEqual([0n, 2n, 2n]);
      expect(serviceOf(triton).modelMetadata("saved", "")).toMatchObject({
        platform: "tensorflow_savedmodel",
      });
    },
  );

  it("is served from a repository, batched", async () => {
    await write(savedModelFiles(asSavedModel(flowersModel())), "models/m/1/model.savedmodel");
    const served = new Triton({
      logInfo: false,
      extensions: [repository({ modelRepository: join(directory, "models") })],
    });
    await served.ready();
    expect(serviceOf(served).modelConfig("m", "")).toMatchObject({
      platform: "tensorflow_savedmodel",
      maxBatchSize: 4,
      input: [{ name: "measures", dims: [4] }],
    });
    const kinds = await Promise.all(measures.map((one) => served.infer("m", { measures: [one] })));
    expect(kinds.map(({ kind }) => kind!.data[0])).toEqual([0n, 2n, 2n]);
    await served.close();
  });

  it("runs loops whose functions read variables", async () => {
    const types = { i: DT.INT32, sum: DT.FLOAT, weights: DT.RESOURCE };
    const cond: FunctionFile = {
      name: "cond_1",
      inputs: types,
      nodes: [
        constant("three", int32(3)),
        node("Less", "Less", ["i", "three:output:0"], { T: { type: DT.INT32 } }),
      ],
      outputs: { result: "Less:z:0" },
    };
    const body: FunctionFile = {
      name: "body_2",
      inputs: types,
      nodes: [
        constant("one", int32(1)),
        node("next", "AddV2", ["i", "one:output:0"], { T: { type: DT.INT32 } }),
        node("read", "ReadVariableOp", ["weights"]),
        node("more", "AddV2", ["sum", "read:value:0"], FLOAT),
      ],
      outputs: { i_out: "next:z:0", weights_out: "weights", sum_out: "more:z:0" },
    };
    // The results of the body are in the order of its arguments.
    const ordered = { ...body, outputs: { i_out: "next:z:0", sum_out: "more:z:0", weights_out: "weights" } };
    const path = await write(
      savedModelFiles({
        nodes: [
          node("x", "Placeholder", [], { dtype: { type: DT.FLOAT }, shape: { shape: [2] } }),
          node("weights", "VarHandleOp"),
          constant("zero", int32(0)),
          node("while", "While", ["zero", "x", "weights"], {
            cond: { func: cond.name },
            body: { func: body.name },
          }),
          node("y", "Identity", ["while:1"], FLOAT),
        ],
        functions: [cond, ordered],
        signatures: {
          serving_default: {
            inputs: { x: { name: "x:0", dtype: DT.FLOAT, shape: [2] } },
            outputs: { y: { name: "y:0", dtype: DT.FLOAT, shape: [2] } },
          },
        },
        variables: { weights: floats([2], [10, 100]) },
      }),
    );
    const model = triton.bind({ modelName: "loop", inferFunc: tensorflow({ model: path, runtime: "cpu" }) });
    const { y } = await model.infer({ x: [1, 2] });
    expect([...y!.data]).toEqual([31, 302]);
  });

  it("looks keys up in tables that functions fill at the start", async () => {
    const fill: FunctionFile = {
      name: "__inference__initializer_1",
      inputs: { table: DT.RESOURCE, keys: DT.INT32, values: DT.INT32 },
      nodes: [node("import", "LookupTableImportV2", ["table", "keys", "values"])],
      outputs: {},
    };
    const list = (values: number[]) => ({
      dtype: DT.INT32,
      shape: [values.length],
      values: Int32Array.from(values),
    });
    const types = { Tin: { type: DT.INT32 }, Tout: { type: DT.INT32 } };
    const path = await write(
      savedModelFiles({
        nodes: [
          node("x", "Placeholder", [], { dtype: { type: DT.INT32 }, shape: { shape: [-1] } }),
          node("hash_table", "HashTableV2", [], {
            key_dtype: { type: DT.INT32 },
            value_dtype: { type: DT.INT32 },
          }),
          constant("keys", list([5, 7])),
          constant("values", list([50, 70])),
          constant("default", int32(-1)),
          node("find", "LookupTableFindV2", ["hash_table", "x", "default"], types),
          node("fill", "StatefulPartitionedCall", ["hash_table", "keys", "values"], {
            f: { func: fill.name },
          }),
          node("NoOp", "NoOp", ["^fill"]),
        ],
        functions: [fill],
        signatures: {
          __saved_model_init_op: { outputs: { __saved_model_init_op: { name: "NoOp", dtype: 0 } } },
          serving_default: {
            inputs: { x: { name: "x:0", dtype: DT.INT32, shape: [-1] } },
            outputs: { y: { name: "find:0", dtype: DT.INT32, shape: [-1] } },
          },
        },
      }),
    );
    const model = triton.bind({ modelName: "table", inferFunc: tensorflow({ model: path, runtime: "cpu" }) });
    const { y } = await model.infer({ x: Int32Array.of(7, 6, 5) });
    expect([...y!.data]).toEqual([70, -1, 50]);
  });

  it("names the operations that TensorFlow.js lacks, with their nodes", async () => {
    const path = await write(
      savedModelFiles({
        nodes: [
          node("x", "Placeholder", [], { dtype: { type: DT.FLOAT }, shape: { shape: [1] } }),
          node("ages", "Bucketize", ["x"], FLOAT),
        ],
        signatures: {
          serving_default: {
            inputs: { x: { name: "x:0", dtype: DT.FLOAT, shape: [1] } },
            outputs: { y: { name: "ages:0", dtype: DT.INT32, shape: [1] } },
          },
        },
      }),
    );
    const model = triton.bind({ modelName: "m", inferFunc: tensorflow({ model: path, runtime: "cpu" }) });
    expect(await outcomeOf(model.ready())).toMatch(
      /UNSUPPORTED cannot serve the TensorFlow model '.*': TensorFlow\.js lacks its operations Bucketize \(node 'ages'\)/,
    );
  });
});

it("a frozen graph answers as the GraphModel that it was made from", async () => {
  const path = await write(
    new Map([["model.graphdef", graphFile({ nodes: asFrozenGraph(flowersModel()) })]]),
    "models/frozen/1",
  );
  await writeFile(
    join(dirname(path), "config.pbtxt"),
    'platform: "tensorflow_graphdef" max_batch_size: 8 parameters { key: "runtime" value { string_value: "cpu" } } input { name: "serving_measures" data_type: TYPE_FP32 dims: [ 4 ] }' +
      ' output { name: "Identity" data_type: TYPE_FP32 dims: [ 3 ] } output { name: "best" data_type: TYPE_INT64 dims: [ 1 ] reshape { shape: [ ] } }',
  );
  const source = await answerOf("source", join(flowers, "model.json"));
  const served = new Triton({
    logInfo: false,
    extensions: [repository({ modelRepository: join(directory, "models") })],
  });
  await served.ready();
  const answer = await served.infer("frozen", { serving_measures: measures });
  expect([...answer.Identity!.data]).toEqual(source.scores);
  expect([...answer.best!.data]).toEqual(source.kind);
  await served.close();
});
