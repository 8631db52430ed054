import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { batch, type Logger, type ModelHandle, Triton } from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/core/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { outcomeOf, outcomesOf, thrownBy } from "../../../../test/support/outcome.js";
import { identityConfig, RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";

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
  expect((await triton.service.repositoryIndex(false)).find((row) => row.name === name)).toEqual({
    name,
    version: "1",
    state: "UNAVAILABLE",
    reason: found,
  });
  for (const version of ["", "1"]) {
    expect(await triton.service.modelReadiness(name, version)).toEqual({ ready: false, reason: found });
  }
  expect(await triton.service.modelReadiness(name, "2")).toEqual({ ready: false, reason: "" });
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
    for (const { status } of handles) expect(status()).toEqual({ version: 1, state: "LOADING", reason: "" });
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
      config: { modelWarmup: [{ name: "w", inputs: { x: { dtype: "INT32", shape: [1], zeroData: true } } }] },
    });
    await expectReported(logger, handle, "still cold");
  });

  it("is rejected by bind when its file is missing or is not a model", () => {
    triton = new Triton();
    const missing = new URL("../../../../test/core/nowhere.mjs", import.meta.url);
    expect(thrownBy(() => triton.bind({ ...specs, inferFunc: missing }))).toContain("cannot find the module");
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
    triton = new Triton({ logger, modelRepository: models.path, exitOnError: false });
    await triton.ready();
    const place = `${pathToFileURL(join(models.path, "m/1/model.js"))}:3:1`;
    expect(logger.lines.filter((line) => line.includes("'m' version 1"))).toEqual([
      expect.stringMatching(`^failed to load 'm' version 1: .*SyntaxError at ${escaped(place)}`),
    ]);
    expect(await triton.service.modelReadiness("m", "")).toEqual({
      ready: false,
      reason: expect.stringContaining(place),
    });
    expect(await triton.service.modelReadiness("good", "")).toEqual({ ready: true, reason: "" });
  });

  it("is logged once when polling finds it, and its readiness has the reason", async () => {
    await using models = await RepositoryOnDisk.create(good);
    const clock = new VirtualClock();
    const logger = new ErrorLines();
    triton = new Triton({ clock, logger, modelRepository: models.path, modelControlMode: "poll" });
    await triton.ready();
    await models.write({ "late/config.pbtxt": "oops", ...broken });
    while (logger.lines.length < 2) await clock.advance(15_000);
    expect(logger.lines.sort()).toEqual([
      expect.stringContaining("Poll failed for model directory 'late': "),
      expect.stringContaining("failed to load 'm' version 1: "),
    ]);
    expect(await triton.service.modelReadiness("late", "")).toEqual({
      ready: false,
      reason: expect.stringContaining('has no field named "oops"'),
    });
    expect((await triton.service.modelReadiness("m", "1")).reason).toContain("SyntaxError at ");
  });

  it("is logged when nobody awaits the start, also for a repository that does not exist", async () => {
    const logger = new ErrorLines();
    triton = new Triton({ logger, modelRepository: "/there/is/no/such/folder" });
    await logger.until(1);
    expect(logger.lines[0]).toContain("/there/is/no/such/folder");
    expect(await outcomeOf(triton.ready())).toContain("/there/is/no/such/folder");
    expect(logger.lines).toHaveLength(1);
  });

  it("is logged once for an explicit load, whose caller gets the error too", async () => {
    await using models = await RepositoryOnDisk.create({ ...good, ...broken });
    const logger = new ErrorLines();
    triton = new Triton({ logger, modelRepository: models.path, modelControlMode: "explicit" });
    expect(await outcomeOf(triton.loadModel("m"))).toContain("SyntaxError at ");
    expect(logger.lines).toHaveLength(1);
  });
});

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
