import { fileURLToPath, pathToFileURL } from "node:url";
import { type Logger, Tensor, Triton, TritonError } from "@tritonjs/core";
import { serviceOf } from "@tritonjs/server";
import { describe, expect, it } from "vitest";
import { outcomeOf } from "../../../test/support/outcome.js";
import { type RepositoryFiles, RepositoryOnDisk } from "../../../test/support/repository-on-disk.js";
import { sendRequest } from "../../../test/support/send-request.js";
import { type ServedOptions, servedOptions } from "../../../test/support/served-options.js";

/** Modules in a temporary folder import the library by its URL. */
const core = pathToFileURL(fileURLToPath(import.meta.resolve("@tritonjs/core"))).href;

const tensors =
  'input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ] output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]';
const batching = `max_batch_size: 4 ${tensors}`;

const scale = `
export default class Scale {
  static autoCompleteConfig(config) {
    config.addInput({ name: "x", dataType: "FP32", dims: [1] });
    config.addOutput({ name: "y", dataType: "TYPE_FP32", dims: [1n] });
    config.setMaxBatchSize(8);
    config.setDynamicBatching();
  }
  async initialize({ modelConfig, logger, metrics, instanceName, modelVersion, modelDirectory }) {
    this.factor = Number(modelConfig.parameters.factor?.stringValue ?? 2);
    this.logger = logger;
    this.rows = metrics.counter({ name: "scaled_rows_total", help: "Rows scaled", labelNames: ["version"] });
    this.version = String(modelVersion);
    logger.info("scale starts: " + instanceName + " " + modelDirectory.split("/").at(-1));
  }
  execute(requests) {
    return requests.map(({ inputs: { x }, batchSize }) => {
      this.rows.inc(batchSize, { version: this.version });
      return { y: Array.from({ length: batchSize }, (_, i) => [this.factor * x.get(i, 0)]) };
    });
  }
  finalize() {
    this.logger.info("scale ends");
  }
}`;

/** Collects the lines that models log. */
function listening() {
  const lines: string[] = [];
  const take = (message: string) => void lines.push(message);
  const logger: Logger = { error: take, warn: take, info: take, debug: take };
  return { lines, logger };
}

async function serve(files: RepositoryFiles, options: ServedOptions = {}) {
  const models = await RepositoryOnDisk.create(files);
  const heard = listening();
  const triton = new Triton(
    servedOptions({ modelRepository: models.path, exitOnError: false, logger: heard.logger, ...options }),
  );
  return {
    triton,
    models,
    lines: heard.lines,
    async [Symbol.asyncDispose]() {
      await triton.close();
      await models[Symbol.asyncDispose]();
    },
  };
}

const y = async (triton: Triton, model: string, x: number) =>
  [...(await triton.infer(model, { x: [[x]] })).y!.data].map(Number);

describe("a model in JavaScript", () => {
  it("may be a class that completes its configuration, initializes, executes and finalizes", async () => {
    await using served = await serve({
      "scale/config.pbtxt": 'parameters { key: "factor" value { string_value: "3" } }',
      "scale/1/model.js": scale,
    });
    const { triton, lines } = served;
    await triton.ready();
    expect(await y(triton, "scale", 4)).toEqual([12]);
    expect(await y(triton, "scale", 5)).toEqual([15]);
    const config = serviceOf(triton).modelConfig("scale", "");
    expect(config).toMatchObject({ backend: "javascript", maxBatchSize: 8, dynamicBatching: {} });
    expect(config.input).toMatchObject([{ name: "x", dataType: "TYPE_FP32", dims: [1] }]);
    await triton.close();
    expect(lines).toContain("scale starts: scale_0 scale");
    expect(lines.at(-1)).toBe("scale ends");
  });

  it("counts custom metrics of all its instances on the metrics page", async () => {
    await using served = await serve({
      "scale/config.pbtxt": "instance_group [ { count: 2 } ]",
      "scale/1/model.mjs": scale,
    });
    const { triton } = served;
    await Promise.all(Array.from({ length: 20 }, (_, i) => y(triton, "scale", i)));
    expect(await triton.metrics.getSingleMetricAsString("scaled_rows_total")).toContain(
      'scaled_rows_total{version="1"} 20',
    );
  });

  it("may be named TritonJsModel and be CommonJS", async () => {
    await using served = await serve({
      "m/config.pbtxt": `backend: "javascript" default_model_filename: "model.cjs" ${batching}`,
      "m/1/model.cjs":
        "exports.TritonJsModel = class { execute(requests) { return requests.map(({ inputs }) => ({ y: inputs.x })); } };",
    });
    expect(await y(served.triton, "m", 7)).toEqual([7]);
  });

  it("may be a bind callback such as batch(), with the functions of a class beside it", async () => {
    const module = `import { batch } from "${core}";
      let add = 0;
      export const initialize = ({ modelConfig }) => { add = modelConfig.maxBatchSize; };
      export function autoCompleteConfig(config) {
        config.addInput({ name: "x", dataType: "FP32", dims: [1] });
        config.addOutput({ name: "y", dataType: "FP32", dims: [1] });
        config.setMaxBatchSize(16);
      }
      export default batch(({ x }) => ({ y: x.data.map((value) => value + add) }));`;
    await using served = await serve({ "m/1/model.js": module });
    expect(await y(served.triton, "m", 1)).toEqual([17]);
  });

  it("may be a generator, which makes it decoupled", async () => {
    const module = `import { batch } from "${core}";
      export default batch(async function* ({ x }) { for (let i = 0; i < x.data[0]; i++) yield { y: [[i]] }; });`;
    await using served = await serve({ "m/config.pbtxt": batching, "m/1/model.js": module });
    expect(await answers(served.triton, 3)).toEqual([0, 1, 2]);
  });

  it("may be stepwise", async () => {
    const module = `import { stepwise, done } from "${core}";
      export default stepwise({
        start: ({ x }) => ({ left: x.data[0] }),
        step: (active) => active.map((one) => (one.left-- > 0 ? { y: [one.left] } : done())),
      });`;
    await using served = await serve({ "m/config.pbtxt": batching, "m/1/model.js": module });
    expect(await Promise.all([answers(served.triton, 2), answers(served.triton, 3)])).toEqual([
      [1, 0],
      [2, 1, 0],
    ]);
  });

  it("may send responses after execute has returned", async () => {
    const module = `export default class {
      execute(requests) {
        for (const { inputs, responseSender } of requests) {
          const count = inputs.x.data[0];
          setImmediate(async () => {
            for (let i = 0; i < count; i++) await responseSender.send({ y: [[i]] });
            responseSender.close();
          });
        }
      }
    }`;
    const config = `${batching} model_transaction_policy { decoupled: true }`;
    await using served = await serve({ "m/config.pbtxt": config, "m/1/model.js": module });
    expect(await answers(served.triton, 2)).toEqual([0, 1]);
  });

  it("calls other models", async () => {
    const module = `export class TritonJsModel {
      execute(requests, { infer }) {
        return Promise.all(requests.map(async ({ inputs: { x } }) => ({ y: (await infer("scale", { x })).y })));
      }
    }`;
    await using served = await serve({
      "m/config.pbtxt": batching,
      "m/1/model.js": module,
      "scale/1/model.js": scale,
    });
    expect(await y(served.triton, "m", 4)).toEqual([8]);
  });

  it("runs in a process when its parameters say so", async () => {
    const module = `export default class {
      execute(requests) { return requests.map(() => ({ y: [[process.pid]] })); }
    }`;
    const files = (isolation: string) => ({
      "m/config.pbtxt": `${batching} parameters { key: "isolation" value { string_value: "${isolation}" } }`,
      "m/1/model.js": module,
    });
    await using inThread = await serve(files("worker"));
    expect(await y(inThread.triton, "m", 0)).toEqual([process.pid]);
    await using inProcess = await serve(files("process"));
    expect(await y(inProcess.triton, "m", 0)).not.toEqual([process.pid]);
  });

  it("behaves the same when it is bound", async () => {
    await using models = await RepositoryOnDisk.create({ "model.mjs": scale });
    const { lines, logger } = listening();
    await using triton = new Triton({ logger });
    for (const isolation of ["worker", "inline"] as const) {
      const handle = triton.bind({
        modelName: "scale",
        inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
        outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
        inferFunc: pathToFileURL(`${models.path}/model.mjs`),
        config: { instanceGroup: { isolation } },
      });
      expect([...(await handle.infer({ x: [[4]] })).y.data]).toEqual([8]);
      await handle.unbind();
      expect(lines.splice(0).filter((line) => line.startsWith("scale"))).toEqual([
        expect.stringMatching(/^scale starts: scale_0_0 tritonjs-models-/),
        "scale ends",
      ]);
    }
    expect(await triton.metrics.getSingleMetricAsString("scaled_rows_total")).toContain('{version="1"} 2');
  });
});

/** All values of `y` in the responses of a decoupled model to one request. */
async function answers(triton: Triton, x: number): Promise<number[]> {
  await triton.ready();
  return new Promise((resolve, reject) => {
    const values: number[] = [];
    const inputs = new Map([["x", Tensor.fromElements("FP32", [1, 1], Float32Array.of(x))]]);
    sendRequest(serviceOf(triton).model("m", ""), { inputs }, (outcome, final) => {
      if (TritonError.is(outcome)) reject(outcome);
      else if (outcome !== undefined) values.push(...(outcome.outputs.get("y")!.elements as Float32Array));
      if (final) resolve(values);
    });
  });
}

/** A class with one of its methods replaced. */
const withMethod = (method: string) =>
  `export default class { ${method} ${method.includes("execute") ? "" : "execute(r) { return r.map(({ inputs }) => ({ y: inputs.x })); }"} }`;

/** Expects that `m` is out of service for this reason, and that `good` serves. */
async function expectBroken({ triton, lines }: Awaited<ReturnType<typeof serve>>, reason: RegExp) {
  await triton.ready().catch(() => {});
  const rows = await serviceOf(triton).repositoryIndex(false);
  expect(rows).toMatchObject([
    { name: "good", state: "READY" },
    { name: "m", state: "UNAVAILABLE", reason: expect.stringMatching(reason) },
  ]);
  expect(lines.filter((line) => line.startsWith("failed to load 'm' version 1: "))).toHaveLength(1);
  expect(await y(triton, "good", 1)).toEqual([2]);
}

describe("a broken module is reported in the index, and other models load", () => {
  it.each<[what: string, source: string, reason: RegExp]>([
    [
      "a syntax error",
      "export default class {\n  execute( { return",
      /cannot import the module .*model\.js: SyntaxError at .*model\.js:2:20: /,
    ],
    ["a missing import", 'import "./nothing.js";', /cannot import the module .*model\.js: .*nothing\.js/],
    [
      "an error at its top level",
      'throw new Error("no licence");',
      /cannot import the module .*model\.js: no licence \(at .*model\.js:1:7\)/,
    ],
    [
      "no exported model",
      "export const x = 1;",
      /model\.js: expected a callback as default export, or a class, got undefined/,
    ],
    [
      "no execute method",
      "export class TritonJsModel {}",
      /expected its class to have a method execute\(requests, context\), got undefined/,
    ],
    [
      "a constructor that throws",
      withMethod('constructor() { throw new Error("no GPU"); }'),
      /constructor failed: no GPU/,
    ],
    [
      "an initialize that throws",
      withMethod('initialize() { throw new Error("no weights"); }'),
      /initialize failed: no weights/,
    ],
    [
      "an initialize that exits",
      withMethod("initialize() { process.exit(3); }"),
      /instance 'm_0' of model 'm' crashed: exited with code 3/,
    ],
    [
      "an autoCompleteConfig that throws",
      withMethod('static autoCompleteConfig() { throw new Error("oops"); }'),
      /autoCompleteConfig failed: oops/,
    ],
    [
      "an autoCompleteConfig that contradicts the configuration",
      withMethod("static autoCompleteConfig(c) { c.setMaxBatchSize(2); }"),
      /configuration specified max_batch_size 4, but in auto-complete-config function/,
    ],
  ])("with %s", async (_what, source, reason) => {
    await using served = await serve({
      "m/config.pbtxt": batching,
      "m/1/model.js": source,
      "good/1/model.js": scale,
    });
    await expectBroken(served, reason);
  });

  it.each([
    [
      "an initialize that never resolves",
      withMethod("initialize() { return new Promise(() => setInterval(() => {}, 1000)); }"),
    ],
    ["an initialize that loops", withMethod("initialize() { for (;;); }")],
    ["an endless loop at its top level", "for (;;);"],
  ])("with %s", async (_what, source) => {
    await using served = await serve({
      "m/config.pbtxt": `${batching} parameters { key: "load_timeout_seconds" value { string_value: "1.5" } }`,
      "m/1/model.js": source,
      "good/1/model.js": scale,
    });
    await expectBroken(served, /was ended: its model did not load within 1500 ms/);
  });

  it("with invalid parameters", async () => {
    await using served = await serve({
      "m/config.pbtxt": `${batching} parameters { key: "isolation" value { string_value: "cloud" } }`,
      "m/1/model.js": scale,
    });
    await served.triton.ready().catch(() => {});
    expect(await serviceOf(served.triton).repositoryIndex(false)).toMatchObject([
      {
        reason: expect.stringMatching(
          /model 'm'.isolation: expected one of inline, worker, process, got 'cloud'/,
        ),
      },
    ]);
  });
});

it("an error in execute fails only its own requests", async () => {
  const module = `export default class {
    execute(requests) {
      const x = requests[0].inputs.x.data[0];
      if (x === 1) throw new Error("one is too few");
      if (x === 2) return [];
      if (x === 3) return undefined;
      if (x === 4) return requests.map(() => new Error("not four"));
      if (x === 5) return requests.map(() => ({ z: 1 }));
      if (x === 6) process.exit(6);
      return requests.map(({ inputs }) => ({ y: inputs.x }));
    }
    finalize() { throw new Error("cannot let go"); }
  }`;
  await using served = await serve({ "m/config.pbtxt": batching, "m/1/model.js": module });
  const { triton, lines } = served;
  const outcomes: string[] = [];
  for (const x of [1, 2, 3, 4, 5, 6]) outcomes.push(await outcomeOf(y(triton, "m", x)));
  expect(outcomes).toEqual([
    "INTERNAL model 'm': one is too few",
    expect.stringMatching(/^INTERNAL Number of outputs returned by `m` inference callable \(0\)/),
    expect.stringMatching(
      /^INTERNAL model 'm': a plain function receives a list of requests; did you mean batch/,
    ),
    "INTERNAL model 'm': not four",
    "INTERNAL model 'm' returned an unknown output 'z': expected ['y']",
    "INTERNAL instance 'm_0' of model 'm' crashed: exited with code 6",
  ]);
  expect(await y(triton, "m", 9)).toEqual([9]);
  await triton.close();
  expect(lines.at(-1)).toBe("model 'm': finalize failed: cannot let go");
});
