import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Triton } from "@tritonjs/core";
import { repository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { outcomeOf } from "../../../../test/support/outcome.js";
import {
  hasPython,
  hasTorch,
  patientPython,
  pythonProgram,
  withoutPython,
  withoutTorch,
} from "../../../../test/support/python.js";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";

const fp32 = (kind: string, name: string, dims = "-1", more = "") =>
  `${kind} [ { name: "${name}" data_type: TYPE_FP32 dims: [ ${dims} ] ${more} } ]`;

const module = `from torch.nn import Linear, Module

class Score(Module):
    def __init__(self):
        super().__init__()
        self.linear = Linear(2, 1)

    def forward(self, x):
        return self.linear(x)
`;

const batching =
  "max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 500000 preferred_batch_size: [ 3 ] }";

/** Configurations of the models that fixtures/make-torch-models.py writes, and files beside them. */
const configs: Readonly<Record<string, string>> = {
  arguments: `platform: "pytorch_libtorch" ${fp32("input", "right")} ${fp32("input", "left")} ${fp32("output", "out__1")}
    parameters [ { key: "INFERENCE_MODE" value { string_value: "false" } },
      { key: "DISABLE_OPTIMIZED_EXECUTION" value { string_value: "true" } },
      { key: "ENABLE_JIT_PROFILING" value { string_value: "0" } },
      { key: "INTRA_OP_THREAD_COUNT" value { string_value: "1" } },
      { key: "ENABLE_WEIGHT_SHARING" value { string_value: "true" } } ]`,
  indices: `backend: "pytorch" ${fp32("input", "b__1")} ${fp32("input", "a__0")} ${fp32("output", "difference__1")} ${fp32("output", "sum__0")}`,
  ordered: `backend: "pytorch" ${fp32("input", "one")} ${fp32("input", "two")} ${fp32("output", "sum")} ${fp32("output", "difference")}`,
  rows: `backend: "pytorch" ${batching} ${fp32("input", "x")} ${fp32("output", "y__0")}
    output [ { name: "rows__1" data_type: TYPE_INT64 dims: [ 1 ] } ]`,
  named: `backend: "pytorch" ${fp32("input", "a")} ${fp32("input", "b")} ${fp32("output", "y")}`,
  texts: `backend: "pytorch" input [ { name: "words" data_type: TYPE_STRING dims: [ -1 ] } ]
    output [ { name: "loud__0" data_type: TYPE_STRING dims: [ -1 ] }, { name: "length__1" data_type: TYPE_INT32 dims: [ -1 ] } ]`,
  wide: `backend: "pytorch" ${fp32("input", "x")} ${fp32("output", "y__0")}`,
  ragged: `backend: "pytorch" ${batching} ${fp32("input", "values", "-1", "allow_ragged_batch: true")}
    batch_input [ { kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: "ends" data_type: TYPE_FP32 source_input: "values" } ]
    ${fp32("output", "sum__0", "1")}`,
  adds: `backend: "pytorch" max_batch_size: 4 ${fp32("input", "x__0", "1")} ${fp32("output", "y__0", "1")}
    sequence_batching {
      control_input [ { name: "start__1" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] } ]
      state [ { input_name: "total__2" output_name: "total__1" data_type: TYPE_FP32 dims: [ 1 ] } ]
    }`,
  scalar: `backend: "pytorch" ${fp32("input", "x")} ${fp32("output", "y")}`,
  count: `backend: "pytorch" ${fp32("input", "x")} ${fp32("output", "y")}`,
  module: `backend: "pytorch" runtime: "model.py" ${batching} ${fp32("input", "x", "2")} ${fp32("output", "y", "1")}`,
  types: `backend: "pytorch" input [ { name: "x" data_type: TYPE_UINT32 dims: [ 1 ] } ] ${fp32("output", "y")}`,
  cut: `backend: "pytorch" ${fp32("input", "x")} ${fp32("output", "y")}`,
  weights: `backend: "pytorch" ${fp32("input", "x")} ${fp32("output", "y")}`,
  archive: `platform: "torch_aoti" ${fp32("input", "INPUT__0")} ${fp32("output", "OUTPUT__0")}`,
};

const script = fileURLToPath(
  new URL("../../../core/test/behaviours/fixtures/make-torch-models.py", import.meta.url),
);
const floats = (tensor: { readonly data: unknown } | undefined) => Array.from(tensor!.data as Float32Array);

describe.skipIf(!hasTorch)(`models of the backend pytorch${withoutTorch}`, () => {
  let models: RepositoryOnDisk;
  let triton: Triton;
  const lines: string[] = [];

  beforeAll(async () => {
    models = await RepositoryOnDisk.create({
      "module/1/model.py": module,
      "types/1/model.pt": "",
      "cut/1/model.pt": "PK\u0003\u0004 and no more",
      "archive/1/model.pt2": "",
    });
    await promisify(execFile)(pythonProgram, [script, models.path]);
    for (const [name, config] of Object.entries(configs)) {
      const path = join(models.path, name, "config.pbtxt");
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, config);
    }
    const write = (message: string) => void lines.push(message);
    triton = new Triton({
      logger: { error: write, warn: write, info: write, debug: write },
      extensions: [
        repository({
          modelRepository: models.path,
          exitOnError: false,
          modelLoadThreadCount: 2,
          backendConfig: patientPython,
        }),
      ],
    });
    await triton.ready();
  }, 600_000);

  afterAll(async () => {
    await triton.close();
    await models[Symbol.asyncDispose]();
  });

  const reasonOf = async (name: string) => {
    const rows = await serviceOf(triton).repositoryIndex(false);
    return rows.find((row) => row.name === name)?.reason ?? "";
  };

  it("finds inputs by the names of forward's arguments, and outputs by their indices", async () => {
    const outputs = await triton.infer("arguments", { left: [5, 6], right: [1, 2] });
    expect(Object.keys(outputs)).toEqual(["out__1"]);
    expect(floats(outputs.out__1)).toEqual([4, 4]);
    expect(lines).toContain(
      "model 'arguments': parameter 'ENABLE_WEIGHT_SHARING' has no effect: each instance is a process with weights of its own",
    );
  });

  it("finds inputs by their indices", async () => {
    const outputs = await triton.infer("indices", { a__0: [5], b__1: [1] });
    expect([floats(outputs.sum__0), floats(outputs.difference__1)]).toEqual([[6], [4]]);
  });

  it("takes the order of the configuration for other names, and says so in the log", async () => {
    const outputs = await triton.infer("ordered", { one: [5], two: [1] });
    expect([floats(outputs.sum), floats(outputs.difference)]).toEqual([[6], [4]]);
    expect(lines.join("\n")).toContain(
      "input 'one' or previous input(s) are neither an input argument to the model 'ordered' nor do they follow the " +
        "<name>__<index> naming convention. Falling back to enforcing strict ordering from model configuration.",
    );
  });

  it("calls the model once for a batch", async () => {
    const answers = await Promise.all([[[1]], [[2]], [[3]]].map((x) => triton.infer("rows", { x })));
    expect(answers.map(({ y__0 }) => floats(y__0))).toEqual([[2], [4], [6]]);
    expect(answers.map((one) => one.rows__1!.get(0, 0))).toEqual([3n, 3n, 3n]);
  });

  it("passes tensors by name to a model that takes a dictionary", async () => {
    expect(floats((await triton.infer("named", { b: [1], a: [2] })).y)).toEqual([21]);
  });

  it("passes text in lists", async () => {
    const { loud__0, length__1 } = await triton.infer("texts", { words: ["abc", "ü"] });
    const texts = Array.from(loud__0!.data as Uint8Array[], (bytes) => new TextDecoder().decode(bytes));
    expect([texts, Array.from(length__1!.data as Int32Array)]).toEqual([
      ["abc!", "ü!"],
      [3, 2],
    ]);
  });

  it("joins ragged inputs, and computes batch inputs", async () => {
    const answers = await Promise.all(
      [[[1, 2, 3]], [[4]], [[5, 6]]].map((values) => triton.infer("ragged", { values })),
    );
    expect(answers.map(({ sum__0 }) => floats(sum__0))).toEqual([[6], [4], [11]]);
  });

  it("keeps the state of sequences", async () => {
    const sums: number[] = [];
    for (const x of [1, 2, 3]) {
      const sequence = { id: 7, start: x === 1, end: x === 3 };
      const { y__0 } = await triton.infer("adds", { x__0: [[x]] }, { sequence });
      sums.push(...floats(y__0));
    }
    expect(sums).toEqual([1, 3, 6]);
  });

  it("runs a class of torch.nn.Module with its weights, where runtime is model.py", async () => {
    const answers = await Promise.all(
      [
        [1, 1],
        [2, 0],
        [0, 1],
      ].map((x) => triton.infer("module", { x: [x] })),
    );
    expect(answers.map(({ y }) => floats(y))).toEqual([[6], [5], [4]]);
  });

  it("refuses outputs of another type, scalars and failures with Triton's words", async () => {
    expect(await outcomeOf(triton.infer("wide", { x: [1] }))).toContain(
      "configuration expects datatype TYPE_FP32 for output 'y__0', model provides TYPE_FP64",
    );
    expect(await outcomeOf(triton.infer("wide", { x: [-1] }))).toMatch(
      /PyTorch execute failure: [\s\S]*a negative number/,
    );
    expect(await outcomeOf(triton.infer("scalar", { x: [1] }))).toContain(
      "output 'y' is a scalar which is not supported.",
    );
  });

  it("refuses configurations that do not fit the model, with Triton's words", async () => {
    expect(await reasonOf("count")).toContain(
      "unable to load model 'count', configuration expects 1 inputs, model provides 2",
    );
    expect(await reasonOf("types")).toContain(
      "unsupported datatype TYPE_UINT32 for input 'x' for model 'types'",
    );
  });

  it("names the fault of a file that is not TorchScript, and what to do with an archive", async () => {
    expect(await reasonOf("cut")).toMatch(/failed to load model 'cut': .*(zip|archive)/i);
    expect(await reasonOf("weights")).toContain(
      "expected TorchScript, as torch.jit.script(model).save writes it, got a file of torch.save",
    );
    expect(await reasonOf("archive")).toContain("torch.jit.trace(model, example).save('model.pt')");
  });
});

describe.skipIf(!hasPython)(`a model of the backend pytorch without torch${withoutPython}`, () => {
  it("says what to install, and where", async () => {
    await using models = await RepositoryOnDisk.create({
      "m/1/model.pt": "",
      "m/config.pbtxt": configs.scalar!,
      // Hides an installed torch.
      "no-torch/torch.py": "raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')",
      "no-torch/config.pbtxt": 'backend: "identity"',
    });
    const before = process.env.PYTHONPATH;
    process.env.PYTHONPATH = join(models.path, "no-torch");
    try {
      const logger = { error() {}, warn() {}, info() {}, debug() {} };
      await using triton = new Triton({
        logger,
        extensions: [
          repository({
            modelRepository: models.path,
            modelControlMode: "explicit",
            backendConfig: patientPython,
          }),
        ],
      });
      expect(await outcomeOf(triton.loadModel("m"))).toMatch(
        /the backend 'pytorch' of model 'm' needs the Python module 'torch', which .* \(Python 3[\d.]+\) cannot import: install it/,
      );
    } finally {
      if (before === undefined) delete process.env.PYTHONPATH;
      else process.env.PYTHONPATH = before;
    }
  });
});
