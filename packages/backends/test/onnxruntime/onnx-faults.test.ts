import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type OnnxRuntimeOptions, onnxruntime } from "@tritonjs/backends/onnxruntime";
import { batch, type Logger, type ModelHandle, type ModelOptions, Triton } from "@tritonjs/core";
import { repository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { VirtualClock } from "@tritonjs/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { onnxModel } from "../../../../examples/onnx-writer/onnx-writer.js";
import { echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { identityOnnx, matrixOnnx } from "../../../../test/support/onnx-models.js";
import { outcomeOf, outcomesOf, thrownBy } from "../../../../test/support/outcome.js";
import { identityConfig, RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";

describe("faults of an ONNX model", () => {
  const triton = new Triton();

  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "tritonjs-onnx-"));
  });

  afterAll(async () => {
    await triton.close();
    await rm(folder, { recursive: true });
  });

  let bound = 0;

  const bind = (options: OnnxRuntimeOptions, config: ModelOptions = {}) =>
    triton.bind({ modelName: `onnx-${bound++}`, inferFunc: onnxruntime(options), config });

  const refusal = (options: OnnxRuntimeOptions, config: ModelOptions = {}) =>
    thrownBy(() => bind(options, config));

  describe("a model file", () => {
    it("may be given as a path, a URL or bytes", async () => {
      const path = join(folder, "identity.onnx");
      const bytes = identityOnnx("FLOAT", ["n"]);
      await writeFile(path, bytes);
      for (const model of [path, pathToFileURL(path), bytes]) {
        const { y } = await triton.infer(bind({ model }).name, { x: Float32Array.of(1, 2) });
        expect(y!.data).toEqual(Float32Array.of(1, 2));
      }
    });

    it("is NOT_FOUND at bind, with its path, when it is missing", () => {
      const path = join(folder, "nowhere.onnx");
      expect(refusal({ model: path })).toBe(
        `NOT_FOUND cannot open the ONNX model '${path}': there is no file '${path}'`,
      );
    });

    it("is INVALID_ARG at bind when it is cut short at any byte", async () => {
      const path = join(folder, "cut.onnx");
      const bytes = matrixOnnx();
      for (const length of [0, 1, 20, bytes.byteLength >> 1, bytes.byteLength - 1]) {
        await writeFile(path, bytes.subarray(0, length));
        expect(refusal({ model: path })).toMatch(/^INVALID_ARG cannot read the ONNX model '.*cut\.onnx': /);
      }
    });

    it("is INVALID_ARG at bind when its bytes are random", async () => {
      let state = 12345;
      const random = () => {
        state = (Math.imul(state, 1103515245) + 12345) >>> 0;
        return state >>> 24;
      };
      for (let i = 0; i < 50; i++) {
        expect(refusal({ model: Uint8Array.from({ length: 200 }, random) })).toMatch(
          /^(INVALID_ARG|UNSUPPORTED) (cannot (read|serve) the ONNX model given as bytes|cannot bind model)/,
        );
      }
    });

    it("is INVALID_ARG, with ONNX Runtime's text, when its graph cannot run", async () => {
      const model = onnxModel({
        name: "unknown",
        opset: 17,
        inputs: [{ name: "x", elemType: "FLOAT", dims: ["n"] }],
        outputs: [{ name: "y", elemType: "FLOAT", dims: ["n"] }],
        nodes: [{ op: "NoSuchOperator", inputs: ["x"], outputs: ["y"] }],
      });
      const handle = bind({ model });
      const outcome = await outcomeOf(handle.ready());
      expect(outcome).toMatch(/^INVALID_ARG cannot load the ONNX model given as bytes: .*NoSuchOperator/);
      const entry = (await serviceOf(triton).repositoryIndex(false)).find(({ name }) => name === handle.name);
      expect(entry?.reason).toContain("NoSuchOperator");
    });
  });

  describe("the first dimension of a model file", () => {
    it("turns batching off by default when it is fixed", async () => {
      const handle = bind({ model: identityOnnx("FLOAT", [2, 3]) });
      expect(handle.config()).toMatchObject({ maxBatchSize: 0, input: [{ dims: [2, 3] }] });
      const { y } = await triton.infer(handle.name, { x: new Float32Array(6) });
      expect(y!.shape).toEqual([2, 3]);
    });

    it("is an error when it is fixed and batching is requested", () => {
      expect(refusal({ model: identityOnnx("FLOAT", [2, 3]) }, { maxBatchSize: 8 })).toContain(
        "config.maxBatchSize is 8, but the first dimension of input 'x' in the model file is not variable: its shape " +
          "is [2,3]; set config.batching to false or export the model with a variable first dimension",
      );
    });

    it("is variable when it is written as -1", () => {
      expect(bind({ model: identityOnnx("FLOAT", [-1, 3]) }).config()).toMatchObject({
        maxBatchSize: 4,
        input: [{ dims: [3] }],
      });
    });
  });

  describe("specifications that contradict the model file", () => {
    it("are all reported at once", () => {
      const problems = thrownBy(() =>
        triton.bind({
          modelName: "contradiction",
          inferFunc: onnxruntime({ model: matrixOnnx() }),
          inputs: [{ name: "z", dtype: "FP32", shape: [4] }],
          outputs: [
            { name: "product", dtype: "FP64", shape: [3] },
            { name: "twice", dtype: "FP32", shape: [5] },
          ],
        }),
      ).split("\n- ");
      expect(problems).toEqual([
        "INVALID_ARG cannot bind model 'contradiction':",
        "input 'z' is not in the model file: expected one of 'x'",
        "input 'x' of the model file is missing: add it to inputs",
        "output 'product': expected dtype FP32, as in the model file, got FP64",
        "output 'twice' has shape [-1,5], but in the model file it is [-1,4]",
      ]);
    });
  });

  describe("execution providers", () => {
    it("are skipped with a warning when they cannot be used, and the active one is reported", async () => {
      const warnings: string[] = [];
      const handle = bind({
        model: identityOnnx("FLOAT", ["n"]),
        executionProviders: ["no-such-provider", "cpu"],
        onWarning: (message) => warnings.push(message),
      });
      await handle.ready();
      expect(handle.instances()[0]!.details).toEqual({ executionProvider: "cpu" });
      expect(warnings).toEqual([
        expect.stringMatching(
          /^model 'onnx-\d+': execution provider 'no-such-provider' cannot be used: .*; trying 'cpu'$/,
        ),
      ]);
    });

    it("fall back to the CPU even when it is not listed", async () => {
      const warnings: string[] = [];
      const handle = bind({
        model: identityOnnx("FLOAT", ["n"]),
        executionProviders: [{ name: "no-such-provider", deviceId: 0 }],
        onWarning: (message) => warnings.push(message),
      });
      await handle.ready();
      expect([handle.instances()[0]!.details.executionProvider, warnings.length]).toEqual(["cpu", 1]);
    });

    it("put the instance into a process for WebGPU, and are skipped when a thread is required", async () => {
      const options = { model: identityOnnx("FLOAT", ["n"]), executionProviders: ["webgpu"] };
      const process = bind({ ...options, onWarning() {} });
      await process.ready();
      expect(process.instances()).toMatchObject([{ isolation: "process" }]);
      const warnings: string[] = [];
      const thread = bind(
        { ...options, onWarning: (message) => warnings.push(message) },
        { instanceGroup: { isolation: "worker" } },
      );
      await thread.ready();
      expect(thread.instances()).toMatchObject([
        { isolation: "worker", details: { executionProvider: "cpu" } },
      ]);
      expect(warnings).toEqual([
        expect.stringMatching(
          /'webgpu' cannot be used: it crashes when two threads of a process use it: set isolation 'process' for the instance; trying 'cpu'$/,
        ),
      ]);
    });

    it("fail the model in strict mode", async () => {
      const handle = bind({
        model: identityOnnx("FLOAT", ["n"]),
        executionProviders: ["no-such-provider", "cpu"],
        strictProviders: true,
        onWarning: () => expect.fail("there is nothing to fall back to"),
      });
      expect(await outcomeOf(handle.ready())).toMatch(
        /^INVALID_ARG cannot load the ONNX model given as bytes: .*no-such-provider/,
      );
    });
  });
});

describe("models that cannot be loaded", () => {
  const specs = { modelName: "m", inputs: echoInputs, outputs: echoOutputs } as const;

  const fixture = (name: string) =>
    new URL(`../../../core/test/behaviours/fixtures/${name}.mjs`, import.meta.url);

  /** Broken files. They are written by the test, because a formatter would not accept them. */
  const FILES = {
    "syntax.mjs": "export default (requests) => requests;\nconst first = 1;\n\tconst second = ;\n",
    "imports-syntax.mjs": 'import "./syntax.mjs";\nexport default (requests) => requests;\n',
    "imports-name.mjs": 'import {\n  missing } from "./empty.mjs";\nexport default () => missing;\n',
    "empty.mjs": "export {};\n",
    "syntax.cjs": "module.exports = (requests) => requests;\nif (a {\n",
    "broken.onnx": "this is not a model",
  };

  let files: RepositoryOnDisk;

  beforeAll(async () => {
    files = await RepositoryOnDisk.create(FILES);
  });

  afterAll(() => files[Symbol.asyncDispose]());

  const fileUrl = (name: keyof typeof FILES) => pathToFileURL(join(files.path, name));

  /** The lines at error level. */
  class ErrorLines implements Logger {
    readonly lines: string[] = [];
    #tell: () => void = () => {};

    /** Resolves when there are as many lines. */
    async until(count: number): Promise<void> {
      while (this.lines.length < count) {
        await new Promise<void>((resolve) => {
          this.#tell = resolve;
        });
      }
    }

    error(message: string): void {
      this.lines.push(message);
      this.#tell();
    }
    warn(): void {}
    info(): void {}
    debug(): void {}
  }

  let triton: Triton;

  afterEach(() => triton.close());

  /** Expects one line about the model, and the same reason wherever it shows. No caller awaits the load. */
  async function expectReported(
    logger: ErrorLines,
    { name, status }: Pick<ModelHandle<[], []>, "name" | "status">,
    reason: RegExp | string,
  ): Promise<void> {
    await logger.until(1);
    const found = expect.stringMatching(reason);
    expect(logger.lines.filter((line) => line.includes(`'${name}' version 1`))).toEqual([found]);
    const line = logger.lines.find((one) => one.includes(`'${name}' version 1`));
    expect(line).toMatch(new RegExp(`^failed to load '${name}' version 1: [A-Z][a-z]+( [a-z]+)*: `));
    expect(status()).toEqual({ version: 1, state: "UNAVAILABLE", reason: found });
    expect((await serviceOf(triton).repositoryIndex(false)).find((row) => row.name === name)).toEqual({
      name,
      version: "1",
      state: "UNAVAILABLE",
      reason: found,
    });
    for (const version of ["", "1"]) {
      expect(await serviceOf(triton).modelReadiness(name, version)).toEqual({ ready: false, reason: found });
    }
    expect(await serviceOf(triton).modelReadiness(name, "2")).toEqual({ ready: false, reason: "" });
  }

  describe("a model of the program that cannot be loaded", () => {
    it("is logged once, with the place of its fault, for each broken module in a worker", async () => {
      const faults: Readonly<Record<string, readonly [module: URL, reason: string]>> = {
        syntax: [fileUrl("syntax.mjs"), `SyntaxError at ${fileUrl("syntax.mjs")}:3:17: Unexpected token ';'`],
        imports: [
          fileUrl("imports-syntax.mjs"),
          `SyntaxError at ${fileUrl("syntax.mjs")}:3:17: Unexpected token ';'`,
        ],
        name: [
          fileUrl("imports-name.mjs"),
          `SyntaxError at ${fileUrl("imports-name.mjs")}:2:3: The requested module './empty.mjs'`,
        ],
        common: [
          fileUrl("syntax.cjs"),
          `SyntaxError at ${join(files.path, "syntax.cjs")}:2:7: Unexpected token '{'`,
        ],
        throws: [fixture("fails-in-its-code"), `(reading 'path') (at ${fixture("fails-in-its-code")}:2:38)`],
        missing: [fixture("imports-what-is-missing"), "there-is-no-such-module.mjs"],
        process: [fileUrl("syntax.mjs"), "syntax.mjs:3:17: Unexpected token ';'"],
      };
      const logger = new ErrorLines();
      triton = new Triton({ logger });
      const handles = Object.entries(faults).map(([modelName, [inferFunc]]) => {
        const isolation = modelName === "process" ? "process" : "worker";
        return triton.bind({ ...specs, modelName, inferFunc, config: { instanceGroup: { isolation } } });
      });
      for (const { status } of handles)
        expect(status()).toEqual({ version: 1, state: "LOADING", reason: "" });
      await logger.until(handles.length);
      for (const handle of handles) await expectReported(logger, handle, escaped(faults[handle.name]![1]));
      await triton.close();
      expect(logger.lines).toHaveLength(handles.length);
    });

    it("is logged once for a callback that fails to warm up", async () => {
      const logger = new ErrorLines();
      triton = new Triton({ logger });
      const handle = triton.bind({
        ...specs,
        inferFunc: batch(() => {
          throw new Error("still cold");
        }),
        config: {
          modelWarmup: [{ name: "w", inputs: { x: { dtype: "INT32", shape: [1], zeroData: true } } }],
        },
      });
      await expectReported(logger, handle, "still cold");
    });

    it("is rejected by bind when its file is missing or is not a model", () => {
      triton = new Triton();
      const missing = new URL("../../../../test/core/nowhere.mjs", import.meta.url);
      expect(thrownBy(() => triton.bind({ ...specs, inferFunc: missing }))).toContain(
        "cannot find the module",
      );
      expect(
        thrownBy(() =>
          triton.bind({ modelName: "m", inferFunc: onnxruntime({ model: fileUrl("broken.onnx") }) }),
        ),
      ).toMatch(/cannot read the ONNX model '.*broken\.onnx'/);
    });

    it("is logged once however many callers wait for it, and each of them gets the error", async () => {
      const logger = new ErrorLines();
      triton = new Triton({ logger });
      const handle = triton.bind({ ...specs, inferFunc: fixture("throws-while-loading") });
      const outcomes = await outcomesOf([
        handle.ready(),
        handle.ready(),
        triton.ready(),
        triton.serve({ frontends: [] }),
        echo(handle, 1),
      ]);
      for (const outcome of outcomes) expect(outcome).toContain("the weights are missing");
      await expectReported(logger, handle, "the weights are missing");
    });

    it("is a warning of the process without a logger, once", async () => {
      const warnings: Error[] = [];
      let tell = () => {};
      const warned = new Promise<void>((resolve) => {
        tell = resolve;
      });
      const listen = (warning: Error) => {
        warnings.push(warning);
        tell();
      };
      process.on("warning", listen);
      onTestFinished(() => void process.off("warning", listen));
      triton = new Triton();
      triton.bind({ ...specs, inferFunc: fixture("throws-while-loading") });
      await warned;
      await triton.close();
      expect(warnings.map(({ name }) => name)).toEqual(["TritonError"]);
      expect(warnings[0]!.message).toMatch(
        /^failed to load 'm' version 1: Internal: .*the weights are missing/,
      );
    });

    it("is not logged when the program closes before it is loaded", async () => {
      const logger = new ErrorLines();
      triton = new Triton({ logger, exitTimeoutSecs: 0 });
      const handle = triton.bind({ ...specs, inferFunc: fixture("never-loads") });
      const ready = outcomeOf(handle.ready());
      await triton.close();
      expect(await ready).not.toBe("done");
      expect(logger.lines).toEqual([]);
    });

    it("is logged when an ensemble does not fit a member that is bound after it", async () => {
      const logger = new ErrorLines();
      triton = new Triton({ logger });
      const pipeline = triton.bindEnsemble({
        modelName: "pipeline",
        inputs: [{ name: "in", dtype: "FP32", shape: [1] }],
        outputs: [{ name: "out", dtype: "FP32", shape: [1] }],
        steps: [{ modelName: "m", inputMap: { x: "in" }, outputMap: { y: "out" } }],
      });
      expect(logger.lines).toEqual([]);
      await triton.bind({ ...specs, inferFunc: batch(({ x }) => ({ y: x })) }).ready();
      expect(pipeline.status()).toMatchObject({
        state: "UNAVAILABLE",
        reason: expect.stringContaining("INT32"),
      });
      expect(logger.lines).toEqual([
        `failed to load 'pipeline' version 1: Invalid argument: ${pipeline.status().reason}`,
      ]);
    });
  });

  describe("a model of a repository that cannot be loaded", () => {
    const good = { "good/config.pbtxt": identityConfig(), "good/1/": "" };
    const broken = { "m/1/model.js": "export default class {\n  execute( { return\n" };

    it("is logged once with its place, and its readiness has the reason", async () => {
      await using models = await RepositoryOnDisk.create({ ...good, ...broken });
      const logger = new ErrorLines();
      triton = new Triton({
        logger,
        extensions: [repository({ modelRepository: models.path, exitOnError: false })],
      });
      await triton.ready();
      const place = `${pathToFileURL(join(models.path, "m/1/model.js"))}:3:1`;
      expect(logger.lines.filter((line) => line.includes("'m' version 1"))).toEqual([
        expect.stringMatching(`^failed to load 'm' version 1: .*SyntaxError at ${escaped(place)}`),
      ]);
      expect(await serviceOf(triton).modelReadiness("m", "")).toEqual({
        ready: false,
        reason: expect.stringContaining(place),
      });
      expect(await serviceOf(triton).modelReadiness("good", "")).toEqual({ ready: true, reason: "" });
    });

    it("is logged once when polling finds it, and its readiness has the reason", async () => {
      await using models = await RepositoryOnDisk.create(good);
      const clock = new VirtualClock();
      const logger = new ErrorLines();
      triton = new Triton({
        clock,
        logger,
        extensions: [repository({ modelRepository: models.path, modelControlMode: "poll" })],
      });
      await triton.ready();
      await models.write({ "late/config.pbtxt": "oops", ...broken });
      while (logger.lines.length < 2) await clock.advance(15_000);
      expect(logger.lines.sort()).toEqual([
        expect.stringContaining("Poll failed for model directory 'late': "),
        expect.stringContaining("failed to load 'm' version 1: "),
      ]);
      expect(await serviceOf(triton).modelReadiness("late", "")).toEqual({
        ready: false,
        reason: expect.stringContaining('has no field named "oops"'),
      });
      expect((await serviceOf(triton).modelReadiness("m", "1")).reason).toContain("SyntaxError at ");
    });

    it("is logged when nobody awaits the start, also for a repository that does not exist", async () => {
      const logger = new ErrorLines();
      triton = new Triton({
        logger,
        extensions: [repository({ modelRepository: "/there/is/no/such/folder" })],
      });
      await logger.until(1);
      expect(logger.lines[0]).toContain("/there/is/no/such/folder");
      expect(await outcomeOf(triton.ready())).toContain("/there/is/no/such/folder");
      expect(logger.lines).toHaveLength(1);
    });

    it("is logged once for an explicit load, whose caller gets the error too", async () => {
      await using models = await RepositoryOnDisk.create({ ...good, ...broken });
      const logger = new ErrorLines();
      triton = new Triton({
        logger,
        extensions: [repository({ modelRepository: models.path, modelControlMode: "explicit" })],
      });
      expect(await outcomeOf(triton.loadModel("m"))).toContain("SyntaxError at ");
      expect(logger.lines).toHaveLength(1);
    });
  });

  function escaped(text: string): string {
    return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  }
});
