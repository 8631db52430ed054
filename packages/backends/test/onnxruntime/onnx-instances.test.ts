import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { type OnnxSession, onnxruntime, openSession } from "@tritonjs/backends/onnxruntime";
import { openTensorflow } from "@tritonjs/backends/tensorflow";
import { batch, Triton, type TritonOptions } from "@tritonjs/core";
import type { DeviceId } from "@tritonjs/core/types";
import { repository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import fc from "fast-check";
import ndarray from "ndarray";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import {
  type OnnxAttribute,
  type OnnxNode,
  type OnnxValue,
  onnxModel,
} from "../../../../examples/onnx-writer/onnx-writer.js";
import { flowers, irisModel } from "../../../../test/support/iris.js";
import { identityOnnx, matrixOnnx, onnxTypes, withMetadata } from "../../../../test/support/onnx-models.js";
import { outcomeOf } from "../../../../test/support/outcome.js";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";
import { namesOfText } from "../../src/onnxruntime/class-names.js";
import { describeOnnxModel } from "../../src/onnxruntime/describe-onnx-model.js";

describe("sessions of callbacks", () => {
  const inputs = [{ name: "x", dtype: "FP32", shape: [4] }] as const;

  const outputs = [
    { name: "product", dtype: "FP32", shape: [3] },
    { name: "twice", dtype: "FP32", shape: [4] },
  ] as const;

  const ones = [[1, 1, 1, 1]];

  let folder: string;

  let file: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "tritonjs-sessions-"));
    file = join(folder, "matrix.onnx");
    await writeFile(file, matrixOnnx());
  });

  afterAll(() => rm(folder, { recursive: true }));

  /** An instance on the CPU, as `initialize` and callbacks see it. */
  const instance = (): { readonly device: DeviceId } => ({ device: { kind: "KIND_CPU", id: 0 } });

  describe("openSession", () => {
    it("gives a callback one session for each instance, which ends with the instance", async () => {
      const sessions = new Set<OnnxSession>();
      await using triton = new Triton();
      const handle = triton.bind({
        modelName: "m",
        inputs,
        outputs,
        inferFunc: batch(async ({ x }, context) => {
          const session = await openSession(pathToFileURL(file), context);
          sessions.add(session);
          return session.run<{ product: "FP32"; twice: "FP32" }>({ x });
        }),
        config: { maxBatchSize: 1, instanceGroup: { count: 2 } },
      });
      const answers = await Promise.all([1, 2, 3, 4].map(() => handle.infer({ x: ones })));
      for (const { product, twice } of answers) {
        expect([...product.data]).toEqual([2, 22, 18]);
        expect([...twice.data]).toEqual([2, 2, 2, 2]);
      }
      expect(sessions.size).toBe(2);
      expect([...sessions].map(({ provider }) => provider)).toEqual(["cpu", "cpu"]);
      await handle.unbind();
      for (const session of sessions) {
        expect(await outcomeOf(session.run({ x: ones }))).toMatch(/released|disposed/);
      }
    });

    it("works in a worker, starting in its initialize", async () => {
      await using triton = new Triton();
      const handle = triton.bind({
        modelName: "m",
        inputs,
        outputs,
        inferFunc: new URL("../../../core/test/behaviours/fixtures/runs-onnx.mjs", import.meta.url),
        config: { parameters: { file } },
      });
      const { product, twice } = await handle.infer({ x: ones });
      expect([[...product.data], [...twice.data]]).toEqual([
        [2, 22, 18],
        [2, 2, 2, 2],
      ]);
    });

    it("accepts the model as bytes, and separates sessions with other options", async () => {
      const one = instance();
      const model = matrixOnnx();
      const session = await openSession(model, one);
      expect(await openSession(Uint8Array.from(model), one)).toBe(session);
      expect(await openSession(model, one, { graphOptimizationLevel: "disabled" })).not.toBe(session);
      expect(await openSession(model, instance())).not.toBe(session);
      expect(session.inputs).toEqual([{ name: "x", dtype: "FP32", shape: [-1, 4] }]);
      expect(session.outputs.map(({ name }) => name)).toEqual(["product", "twice"]);
    });

    it("runs models of scalars and of text", async () => {
      const scalar = await openSession(identityOnnx("INT64", []), instance());
      const { y } = await scalar.run<{ y: "INT64" }>({ x: BigInt64Array.of(7n) });
      expect([y.shape, [...y.data]]).toEqual([[], [7n]]);
      const text = await openSession(identityOnnx("STRING", ["n"]), instance());
      const words = await text.run<{ y: "BYTES" }>({ x: ["a", "ä"] });
      expect(words.y.data.map((bytes) => Buffer.from(bytes).toString())).toEqual(["a", "ä"]);
    });

    it("reports inputs and outputs that the model does not have or cannot accept", async () => {
      const session = await openSession(file, instance());
      expect(await outcomeOf(session.run({ z: ones }))).toBe(
        "INVALID_ARG inputs of the ONNX model: expected [x], got [z]",
      );
      expect(await outcomeOf(session.run({}))).toBe(
        "INVALID_ARG inputs of the ONNX model: expected [x], got []",
      );
      expect(await outcomeOf(session.run({ x: ["a"] }))).toMatch(
        /^INVALID_ARG .*input 'x' of the ONNX model/,
      );
    });

    it("may be retried after a failure", async () => {
      const one = instance();
      const late = join(folder, "late.onnx");
      expect(await outcomeOf(openSession(late, one))).toMatch(
        /^NOT_FOUND cannot open the ONNX model '.*late.onnx': there is no file /,
      );
      await writeFile(late, matrixOnnx());
      expect((await openSession(late, one)).provider).toBe("cpu");
    });

    it("tries CUDA first on a GPU, and only CUDA in strict mode", async () => {
      const warnings: string[] = [];
      const onGpu = (): { readonly device: DeviceId } => ({ device: { kind: "KIND_GPU", id: 0 } });
      const onWarning = (line: string) => void warnings.push(line);
      const { provider } = await openSession(file, onGpu(), { onWarning });
      expect(["cuda", "cpu"]).toContain(provider);
      expect(warnings).toHaveLength(provider === "cuda" ? 0 : 1);
      const strict = await outcomeOf(openSession(file, onGpu(), { strictProviders: true }));
      expect(strict === "done").toBe(provider === "cuda");
    });
  });

  describe("openTensorflow", () => {
    it("returns TensorFlow.js on the CPU, whichever runtime is installed", async () => {
      const tf = await openTensorflow(instance(), { runtime: "cpu" });
      const squares = tf.tidy(() => tf.tensor1d([1, 2, 3]).square().dataSync());
      expect([...squares]).toEqual([1, 4, 9]);
    });

    it("reports what an instance on a GPU needs", async () => {
      const onGpu = { device: { kind: "KIND_GPU", id: 0 } } as const;
      expect(await outcomeOf(openTensorflow(onGpu, { runtime: "wasm" }))).toBe(
        "INVALID_ARG TensorFlow's runtime for an instance on a GPU: expected tfjs-node-gpu, got 'wasm'",
      );
    });
  });
});

describe("batches sent ahead", () => {
  let triton: Triton;

  afterEach(() => triton.close());

  async function served(isolation: "worker" | "process", options: TritonOptions = {}) {
    triton = new Triton(options);
    const handle = triton.bind({
      modelName: "iris",
      inferFunc: onnxruntime({ model: irisModel }),
      config: { maxBatchSize: 2, instanceGroup: { isolation } },
    });
    await handle.ready();
    const [input] = handle.metadata().inputs;
    const ask = async (flower: number): Promise<unknown[]> => {
      const answer = await handle.inferSample({ [input!.name]: flowers[flower]! } as never);
      return Object.values(answer as Record<string, { data: unknown }>).map(({ data }) => data);
    };
    return { handle, ask };
  }

  describe("a model file whose worker takes batches ahead", () => {
    it("answers each request with its own rows", async () => {
      const { handle, ask } = await served("worker");
      const apart: unknown[] = [];
      for (let flower = 0; flower < 20; flower++) apart.push(await ask(flower));
      const before = handle.statistics().executionCount;
      const together = await Promise.all(Array.from({ length: 20 }, (_, flower) => ask(flower)));
      expect(together).toEqual(apart);
      expect(handle.statistics().executionCount - before).toBeLessThan(20);
    });

    it.skipIf(process.platform === "win32")(
      "fails one batch when its process dies, and runs the other one after the restart",
      async () => {
        const { handle, ask } = await served("process");
        const expected = [await ask(2), await ask(3)];
        const pid = Number(handle.instances()[0]!.details.pid);
        process.kill(pid, "SIGSTOP");
        const outcomes = [0, 1].map((flower) => outcomeOf(ask(flower)));
        const answers = [2, 3, 4, 5].map((flower) => ask(flower));
        const running = () => handle.queue().instances[0]!.running.map(({ rows }) => rows);
        while (running().length < 2) await turn();
        expect(running()).toEqual([2, 2]);
        process.kill(pid, "SIGKILL");
        for (const outcome of await Promise.all(outcomes)) expect(outcome).toMatch(/^INTERNAL .* crashed: /);
        expect((await Promise.all(answers)).slice(0, 2)).toEqual(expected);
        expect(handle.instances()[0]!.healthy).toBe(true);
      },
    );

    it.skipIf(process.platform === "win32")(
      "fails both batches when the model is closed meanwhile",
      async () => {
        const { handle, ask } = await served("process", { exitTimeoutSecs: 0 });
        process.kill(Number(handle.instances()[0]!.details.pid), "SIGSTOP");
        const outcomes = [0, 1, 2, 3].map((flower) => outcomeOf(ask(flower)));
        while (handle.queue().instances[0]!.running.length < 2) await turn();
        await triton.close();
        for (const outcome of await Promise.all(outcomes))
          expect(outcome).toMatch(/^(UNAVAILABLE|INTERNAL) /);
      },
    );
  });
});

/** Enough for buffers that come back from the worker. */
const WIDTH = 50_000;

describe("large inputs of a model file in a worker", () => {
  let triton: Triton;
  beforeAll(async () => {
    triton = new Triton();
    const handle = triton.bind({
      modelName: "identity",
      inferFunc: onnxruntime({ model: identityOnnx(onnxTypes.FP32, ["N", "W"]) }),
      config: { maxBatchSize: 8 },
    });
    await handle.ready();
  });
  afterAll(() => triton.close());

  it("never carry bytes of another batch, and answers stay as they are", async () => {
    const answers: { value: number; size: number; data: Float32Array }[] = [];
    let next = 1;
    const ask = async (rows: number, width: number) => {
      const value = next++;
      const x = ndarray(new Float32Array(rows * width).fill(value), [rows, width]);
      const answer = await triton.infer<string>("identity", { x });
      answers.push({ value, size: rows * width, data: (answer.y as { data: Float32Array }).data });
    };
    for (const [count, rows, width] of [
      [1, 8, WIDTH],
      [8, 1, WIDTH],
      [6, 2, WIDTH],
      [5, 3, WIDTH / 2],
      [1, 1, WIDTH],
      [12, 1, WIDTH / 2],
    ] as const) {
      await Promise.all(Array.from({ length: count }, () => ask(rows, width)));
    }
    for (const { value, size, data } of answers) {
      expect([data.length, data.every((element) => element === value)]).toEqual([size, true]);
    }
  });
});

const SILENT = { error() {}, warn() {}, info() {}, debug() {} };

const labelsOf = (model: string | Uint8Array) =>
  Object.fromEntries(
    describeOnnxModel(model).outputs.flatMap(({ name, labels }) =>
      labels === undefined ? [] : [[name, labels]],
    ),
  );

const scoring = (classes: number, metadata: Readonly<Record<string, string>>) =>
  withMetadata(identityOnnx("FLOAT", ["batch", classes]), metadata);

describe("class names in the metadata of an ONNX file", () => {
  it.each([
    ["names", `{0: 'tench', 1: "jack-o'-lantern", 2: 'caf\\xe9'}`, ["tench", "jack-o'-lantern", "café"]],
    ["names", "['a', 'b', 'c']", ["a", "b", "c"]],
    ["classes", '["a", "\\ud83d\\udc08", "c\\"d"]', ["a", "🐈", 'c"d']],
    ["id2label", '{"2": "c", "0": "a", "1": "b"}', ["a", "b", "c"]],
    ["labels", "a\nb, with a comma\nc\n", ["a", "b, with a comma", "c"]],
    ["class_names", "a,b , c", ["a", "b", "c"]],
    ["names", "{0: '__proto__', 1: 'constructor', 2: ''}", ["__proto__", "constructor", ""]],
  ])("reads %s = %s", (key, text, names) => {
    expect(labelsOf(scoring(3, { [key]: text }))).toEqual({ y: names });
  });

  it.each([
    "{0: 'a', 2: 'c', 3: 'd'}",
    "{0: 'a', 1: 'b', 'x': 'c'}",
    "{0: 'a', 1: 'b', 4294967295: 'c'}",
    "{0: 'a', 1: 'b', 2: 3}",
    "[['a'], ['b'], ['c']]",
    "['a', 'b', 'c",
    "array(['a', 'b', 'c'])",
    "['a', 'b']",
    "a",
    "",
  ])("leaves out %s", (text) => {
    expect(labelsOf(scoring(3, { names: text }))).toEqual({});
  });

  it("takes the list that fits the output, whatever key has another one", () => {
    expect(labelsOf(scoring(2, { names: "['a', 'b', 'c']", labels: "yes,no" }))).toEqual({
      y: ["yes", "no"],
    });
  });

  it("labels only an output that has one element of a row for each name", () => {
    const names = { names: "['a', 'b', 'c']" };
    const of = (dims: (number | string)[]) => labelsOf(withMetadata(identityOnnx("FLOAT", dims), names));
    expect(of([1, 3])).toEqual({ y: ["a", "b", "c"] });
    expect(of(["n", 3, 1, 1])).toEqual({ y: ["a", "b", "c"] });
    expect(of([3])).toEqual({ y: ["a", "b", "c"] });
    for (const dims of [["n", "k"], ["n", "length", 3], [2, 3], ["n", 7, 100], [], [0]])
      expect(of(dims)).toEqual({});
    expect(labelsOf(withMetadata(identityOnnx("INT64", ["n", 3]), names))).toEqual({});
    const value = (name: string): OnnxValue => ({ name, elemType: "FLOAT", dims: ["n", 3] });
    const boxes = onnxModel({
      name: "two",
      opset: 17,
      inputs: [value("x")],
      outputs: [value("box"), value("scores")],
      nodes: ["box", "scores"].map((output) => ({ op: "Identity", inputs: ["x"], outputs: [output] })),
    });
    expect(labelsOf(withMetadata(boxes, names))).toEqual({});
  });

  it("reads what Python and JSON print of any names", () => {
    const text = fc.uint16Array().map((units) => String.fromCharCode(...units));
    const names = fc.array(text, { minLength: 1 });
    fc.assert(
      fc.property(names, (list) => {
        expect(namesOfText(JSON.stringify(list))).toEqual([list]);
        expect(namesOfText(JSON.stringify({ ...list }))).toEqual([list]);
      }),
    );
    fc.assert(fc.property(text, (broken) => void namesOfText(`{${broken}`)));
  });
});

/** A classifier of scikit-learn as converters write it: an output of labels, and one of scores. */
function classifier(node: OnnxNode, more: { readonly strings?: readonly string[] } = {}): Uint8Array {
  return onnxModel({
    name: "sklearn",
    opset: 17,
    domains: { "ai.onnx.ml": 2 },
    inputs: [{ name: "x", elemType: "FLOAT", dims: ["n", 2] }],
    outputs: [
      { name: "label", elemType: "STRING", dims: ["n"] },
      { name: "probabilities", elemType: "FLOAT", dims: ["n", 3] },
    ],
    nodes: [node],
    initializers: more.strings && [{ name: "classes", dims: [more.strings.length], data: more.strings }],
  });
}

const node = (op: string, attributes: Readonly<Record<string, OnnxAttribute>>, inputs = ["x"]): OnnxNode => ({
  op,
  domain: "ai.onnx.ml",
  inputs,
  outputs: ["label", "probabilities"],
  attributes,
});

describe("class names in the operators of an ONNX file", () => {
  const names = ["cat", "dog", "owl"];
  it.each([
    ["TreeEnsembleClassifier", { classlabels_strings: { strings: names } }],
    ["LinearClassifier", { classlabels_strings: { strings: names } }],
    ["SVMClassifier", { classlabels_strings: { strings: names } }],
    ["ZipMap", { classlabels_strings: { strings: names } }],
    [
      "LabelEncoder",
      { keys_int64s: { ints: [2, 0, 1] }, values_strings: { strings: ["owl", "cat", "dog"] } },
    ],
    ["LabelEncoder", { classes_strings: { strings: names } }],
  ] as const)("reads those of %s", (op, attributes) => {
    expect(labelsOf(classifier(node(op, attributes)))).toEqual({ probabilities: names });
  });

  it("reads the constant from which a label is chosen", () => {
    for (const op of ["ArrayFeatureExtractor", "Gather"]) {
      const model = classifier(node(op, {}, ["classes", "x"]), { strings: names });
      expect(labelsOf(model)).toEqual({ probabilities: names });
    }
  });

  it("takes numbers of classes as names, unless they count from 0", () => {
    const of = (ints: number[]) =>
      labelsOf(classifier(node("TreeEnsembleClassifier", { classlabels_int64s: { ints } })));
    expect(of([3, 5, 8])).toEqual({ probabilities: ["3", "5", "8"] });
    expect(of([0, 1, 2])).toEqual({});
    expect(of([-1, 0, 1])).toEqual({});
  });
});

describe("class names in config.json of Hugging Face", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "class-names-"));
    await mkdir(join(folder, "onnx"));
    await writeFile(join(folder, "onnx/model.onnx"), identityOnnx("FLOAT", ["batch_size", 2]));
    await writeFile(join(folder, "config.json"), '{"id2label":{"0":"NEGATIVE","1":"POSITIVE"}}');
  });
  afterAll(() => rm(folder, { recursive: true }));

  it("reads them beside the graph, and beside its folder onnx", async () => {
    expect(labelsOf(join(folder, "onnx/model.onnx"))).toEqual({ y: ["NEGATIVE", "POSITIVE"] });
    await writeFile(join(folder, "model.onnx"), identityOnnx("FLOAT", ["batch_size", 2]));
    expect(labelsOf(join(folder, "model.onnx"))).toEqual({ y: ["NEGATIVE", "POSITIVE"] });
  });

  it.each(["{", "null", "[]", '{"id2label":null}', '{"id2label":["a","b"]}', '{"id2label":{"0":1,"1":2}}'])(
    "does without %s",
    async (config) => {
      const own = await mkdtemp(join(folder, "own-"));
      await writeFile(join(own, "model.onnx"), identityOnnx("FLOAT", ["batch_size", 2]));
      await writeFile(join(own, "config.json"), config);
      const labels = labelsOf(join(own, "model.onnx"));
      expect(labels).toEqual(config.includes('["a"') ? { y: ["a", "b"] } : {});
    },
  );

  it("does not follow a link out of the model's directory in a repository", async () => {
    await using models = await RepositoryOnDisk.create({
      "m/1/model.onnx": identityOnnx("FLOAT", ["batch_size", 2]),
    });
    await symlink(join(folder, "config.json"), join(models.path, "m/1/config.json"));
    await using triton = new Triton({
      logger: SILENT,
      extensions: [repository({ modelRepository: models.path, exitOnError: false })],
    });
    await triton.ready().catch(() => {});
    const [row] = await serviceOf(triton).repositoryIndex(false);
    expect(row?.reason).toMatch(/config\.json leads out of .* through a symbolic link/);
  });
});
