import { type Logger, Triton } from "@tritonjs/core";
import { serviceOf } from "@tritonjs/server";
import { describe, expect, it } from "vitest";
import { outcomeOf } from "../../../test/support/outcome.js";
import { type RepositoryFiles, RepositoryOnDisk } from "../../../test/support/repository-on-disk.js";
import { type ServedOptions, servedOptions } from "../../../test/support/served-options.js";

const tensors =
  'input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ] output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]';

const IDENTITY = JSON.stringify({
  backend: "javascript",
  input: [{ name: "x", data_type: "TYPE_FP32", dims: [1] }],
  output: [{ name: "y", data_type: "TYPE_FP32", dims: [1] }],
});

const echo = "export default (requests) => requests.map(({ inputs: { x } }) => ({ y: x }));";

/** A server with model files in a place without a `node_modules` above it. */
async function serve(files: RepositoryFiles, options: ServedOptions = {}) {
  const models = await RepositoryOnDisk.create(files);
  const lines: string[] = [];
  const waiting = new Set<() => void>();
  const take = (line: string) => {
    lines.push(line);
    for (const look of waiting) look();
  };
  const logger: Logger = { error: take, warn: take, info: take, debug: take };
  const triton = new Triton(
    servedOptions({ modelRepository: models.path, exitOnError: false, logger, ...options }),
  );
  await triton.ready();
  return {
    triton,
    /** Resolves when the line is in the log. */
    logged: (line: string) =>
      new Promise<void>((resolve) => {
        const look = () => {
          if (!lines.includes(line)) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
    async [Symbol.asyncDispose]() {
      await triton.close();
      await models[Symbol.asyncDispose]();
    },
  };
}

const ask = async (triton: Triton, model: string, x: number) =>
  [...(await triton.infer(model, { x: [x] })).y!.data].map(Number);

const throws = `
import { TritonError } from "@tritonjs/core";
import { AutoCompleteConfig } from "@tritonjs/core/backend";
import { elementCount } from "@tritonjs/protocol";
export default (requests) => requests.map(({ inputs: { x } }) => {
  if (x.get(0) < 0) throw new TritonError("NOT_FOUND", "negative, " + elementCount([2, 3]) + " " + (typeof AutoCompleteConfig === "function"));
  return { y: x };
});`;

it.each(["worker", "process"])("a module finds the library that runs it: %s", async (isolation) => {
  const config = `${tensors}\nparameters { key: "isolation" value { string_value: "${isolation}" } }`;
  await using served = await serve({ "m/config.pbtxt": config, "m/1/model.mjs": throws });
  expect(await ask(served.triton, "m", 3)).toEqual([3]);
  expect(await outcomeOf(ask(served.triton, "m", -1))).toBe("NOT_FOUND negative, 6 true");
});

it("a module that imports a missing package is reported", async () => {
  const files = { "m/config.pbtxt": tensors, "m/1/model.mjs": 'import "@tritonjs/nothing";' };
  await using served = await serve(files);
  const [row] = await serviceOf(served.triton).repositoryIndex(false);
  expect(row?.reason).toContain("Cannot find package '@tritonjs/nothing'");
});

const manages = `
export default class {
  async initialize({ models }) {
    this.models = models;
    this.before = await models.isModelReady("other");
  }
  async execute(requests, { infer }) {
    const { models } = this;
    const seen = [this.before];
    await models.loadModel("other");
    seen.push(await models.isModelReady("other", 1), await models.isModelReady("other", 7));
    const [x] = (await infer("other", { x: [5] })).y.data;
    await models.unloadModel("other");
    seen.push(await models.isModelReady("other"));
    const files = new Map([["1/model.mjs", new TextEncoder().encode(${JSON.stringify(echo)})]]);
    await models.loadModel("made", { config: ${JSON.stringify(IDENTITY)}, files });
    seen.push(await models.isModelReady("made"));
    const failed = await models.loadModel("nobody").catch(({ code, message }) => code + " " + message);
    return requests.map(() => ({ y: [x + seen.reduce((sum, one, i) => sum + (one ? 10 ** (i + 1) : 0), 0)],
      said: [failed] }));
  }
}`;

const SAYS = `${tensors.replace(/ \]$/, ', { name: "said" data_type: TYPE_STRING dims: [ 1 ] } ]')}`;

it.each(["worker", "process"])("a model loads and unloads others: %s", async (isolation) => {
  const config = `${SAYS}\nparameters { key: "isolation" value { string_value: "${isolation}" } }`;
  const files = {
    "manages/config.pbtxt": config,
    "manages/1/model.mjs": manages,
    "other/config.pbtxt": tensors,
    "other/1/model.mjs": echo,
  };
  const options = { modelControlMode: "explicit", loadModel: ["manages"] } as const;
  await using served = await serve(files, options);
  const { y, said } = await served.triton.infer("manages", { x: [1] });
  // The value 5, and yes to question 2 (other 1 is ready) and question 5 (made is ready).
  expect([...y!.data]).toEqual([5 + 100 + 100_000]);
  const [text] = said!.data as unknown as Uint8Array[];
  expect(Buffer.from(text!).toString()).toMatch(/^INTERNAL failed to load 'nobody', failed to poll/);
});

it("a model that replaces its own instances does not wait for the one it runs in", async () => {
  const replaces = `
export default class {
  initialize({ models }) { this.models = models; }
  async execute(requests) {
    const config = ${JSON.stringify({ ...JSON.parse(IDENTITY), instance_group: [{ kind: "KIND_CPU", host_policy: "other" }] })};
    await this.models.loadModel("m", { config: JSON.stringify(config) });
    return requests.map(({ inputs: { x } }) => ({ y: x }));
  }
}`;
  const files = { "m/config.pbtxt": `backend: "javascript" ${tensors}`, "m/1/model.mjs": replaces };
  await using served = await serve(files, { modelControlMode: "explicit", loadModel: ["m"] });
  expect(await ask(served.triton, "m", 3)).toEqual([3]);
  const { instanceGroup } = serviceOf(served.triton).modelConfig("m", "");
  expect(instanceGroup.map(({ hostPolicy }) => hostPolicy)).toEqual(["other"]);
});

describe("calls of a decoupled model", () => {
  const counts = `
export default class {
  initialize({ logger }) { this.logger = logger; }
  async *execute(requests) {
    try {
      for (let i = 0; ; i++) yield requests.map(() => ({ y: [i] }));
    } finally {
      this.logger.info("counting was given up");
    }
  }
}`;
  const DECOUPLED = `${tensors}\nmodel_transaction_policy { decoupled: true }`;
  const takes = (body: string) => `
export default async (requests, { stream, signal }) => {
  let sum = 0;
  for await (const { y } of stream("counts", { x: [1] })) { sum += y.get(0); ${body} }
  return requests.map(() => ({ y: [sum] }));
};`;
  const files = {
    "counts/config.pbtxt": DECOUPLED,
    "counts/1/model.mjs": counts,
    "some/config.pbtxt": tensors,
    "some/1/model.mjs": takes("if (sum >= 10) break;"),
    "all/config.pbtxt": tensors,
    "all/1/model.mjs": takes(""),
  };

  it("end when the loop is left", async () => {
    await using served = await serve(files);
    expect(await ask(served.triton, "some", 1)).toEqual([10]);
    await served.logged("counting was given up");
  });

  it("end together with the request that made them", async () => {
    await using served = await serve(files);
    const controller = new AbortController();
    const asked = outcomeOf(served.triton.infer("all", { x: [1] }, { signal: controller.signal }));
    controller.abort();
    expect(await asked).toMatch(/^CANCELLED/);
    expect(await ask(served.triton, "some", 1)).toEqual([10]);
  });
});

const stripsTypes = (process.features as { typescript?: unknown }).typescript === "strip";

it.skipIf(!stripsTypes)(
  `model.ts runs without a build step${stripsTypes ? "" : " (skipped: this Node strips no types)"}`,
  async () => {
    const code = `
import { type JsModel, TritonError } from "@tritonjs/core";
interface Row { readonly factor: number }
export default class Doubles implements JsModel {
  #row: Row = { factor: 2 };
  execute(requests: any[]) {
    return requests.map(({ inputs: { x } }) => ({ y: [(x.get(0) as number) * this.#row.factor] }));
  }
}`;
    await using served = await serve({ "m/config.pbtxt": tensors, "m/1/model.ts": code });
    expect(await ask(served.triton, "m", 3)).toEqual([6]);
  },
);
