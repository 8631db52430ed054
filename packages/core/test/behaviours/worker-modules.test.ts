import { setImmediate as turn } from "node:timers/promises";
import { Triton } from "@tritonjs/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { outcomeOf, outcomesOf, thrownBy } from "../../../../test/support/outcome.js";

const fixture = (name: string) => new URL(`./fixtures/${name}.mjs`, import.meta.url);
const specs = { modelName: "m", inputs: echoInputs, outputs: echoOutputs } as const;

let triton: Triton;
beforeEach(() => {
  triton = new Triton();
});
afterEach(() => triton.close());

describe("a module in a worker", () => {
  it("may export a callback made with batch()", async () => {
    const handle = triton.bind({ ...specs, inferFunc: fixture("batch-double") });
    await handle.ready();
    expect(await Promise.all([1, 2, 3].map((value) => echo(handle, value)))).toEqual([2, 4, 6]);
    expect(handle.statistics()).toMatchObject({ inferenceCount: 3, executionCount: 1 });
  });

  it("may export a callback made with sample()", async () => {
    const handle = triton.bind({
      modelName: "sum",
      inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
      inferFunc: fixture("sample-sum"),
      config: { batching: false },
    });
    expect([...(await handle.infer({ x: [1, 2, 3] })).y.data]).toEqual([6]);
  });

  it("may export a plain callback, which gets the same request and instance data as on the main thread", async () => {
    const handle = triton.bind({
      modelName: "report",
      modelVersion: 2,
      inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
      outputs: [{ name: "report", dtype: "BYTES", shape: [1] }],
      inferFunc: fixture("plain-report"),
    });
    await handle.ready();
    const parameters = { big: 2n ** 60n, flag: true };
    const [one, two] = await Promise.all([
      handle.infer({ x: [[1]] }, { id: "a", parameters: { flag: true } }),
      handle.infer({ x: [[2], [3]] }, { id: "b" }),
    ]);
    const read = (bytes: Uint8Array | undefined) => JSON.parse(Buffer.from(bytes!).toString());
    const same = {
      isMainThread: false,
      together: ["a", "b"],
      modelName: "report",
      modelVersion: 2,
      instanceName: "report_0",
      instanceIndex: 0,
      device: { kind: "KIND_CPU", id: 0, executionProviders: ["cpu"], environment: {}, torch: "cpu" },
      maxBatchSize: 4,
    };
    expect(read(one.report.data[0])).toEqual({
      ...same,
      id: "a",
      x: [1],
      parameters: { flag: true },
      batchSize: 1,
    });
    expect(read(two.report.data[1])).toEqual({ ...same, id: "b", x: [2, 3], parameters: {}, batchSize: 2 });
    const failing = handle.infer({ x: [[1]] }, { id: "c", parameters: { ...parameters, fail: true } });
    expect(await outcomeOf(failing)).toBe("INTERNAL model 'report': failed c");
  });

  it("runs in as many workers as there are instances", async () => {
    const handle = triton.bind({
      modelName: "report",
      inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
      outputs: [{ name: "report", dtype: "BYTES", shape: [1] }],
      inferFunc: fixture("plain-report"),
      config: { maxBatchSize: 1, instanceGroup: { count: 2 } },
    });
    await handle.ready();
    const answers = await Promise.all([1, 2].map((value) => handle.inferSample({ x: [value] })));
    const names = answers.map(
      ({ report }) => JSON.parse(Buffer.from(report.data[0]!).toString()).instanceName,
    );
    expect(names).toEqual(["report_0_0", "report_0_1"]);
  });

  it("keeps the memory of its results", async () => {
    const handle = triton.bind({
      modelName: "constant",
      inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
      outputs: [
        { name: "numbers", dtype: "UINT8", shape: [4] },
        { name: "words", dtype: "BYTES", shape: [1] },
      ],
      inferFunc: fixture("constant-buffers"),
      config: { maxBatchSize: 1 },
    });
    for (let i = 0; i < 3; i++) {
      const { numbers, words } = await handle.inferSample({ x: [i] });
      expect([...numbers.data]).toEqual([1, 2, 3, 4]);
      expect(Buffer.from(words.data[0]!).toString()).toBe("same");
    }
  });
});

describe("a cancelled request to a worker", () => {
  it("ends at once, and the module is notified when all requests of its batch are cancelled", async () => {
    const handle = triton.bind({ ...specs, inferFunc: fixture("waits-for-cancel") });
    await handle.ready();
    const controllers = [new AbortController(), new AbortController()];
    const sent = controllers.map(({ signal }, i) => outcomeOf(echo(handle, i + 1, { signal })));
    await turn();
    expect(handle.instances()[0]!.busy).toBe(true);
    controllers[0]!.abort();
    expect(await sent[0]).toBe("CANCELLED the request was cancelled");
    expect(handle.instances()[0]!.busy).toBe(true);
    controllers[1]!.abort();
    expect(await sent[1]).toBe("CANCELLED the request was cancelled");
    expect(await echo(handle, 0)).toBe(102);
  });
});

describe("closing a model with workers", () => {
  it("ends a worker whose module keeps a timer", async () => {
    const handle = triton.bind({ ...specs, inferFunc: fixture("keeps-a-timer") });
    expect(await echo(handle, 1)).toBe(1);
    await triton.close();
    expect(await outcomeOf(echo(handle, 1))).toMatch(/^UNAVAILABLE/);
  });

  it("ends a worker that never finishes, after the exit timeout", async () => {
    triton = new Triton({ exitTimeoutSecs: 0 });
    const handle = triton.bind({ ...specs, inferFunc: fixture("waits-for-cancel") });
    await handle.ready();
    const sent = outcomesOf([1, 2].map((value) => echo(handle, value)));
    await turn();
    await triton.close();
    expect(await sent).toEqual(
      Array(2).fill("UNAVAILABLE model 'm' was stopped before the request finished"),
    );
  });
});

describe("an invalid worker module", () => {
  const ready = (name: string, config = {}) =>
    outcomeOf(triton.bind({ ...specs, inferFunc: fixture(name), config }).ready());

  it("is rejected by bind when it is missing", () => {
    expect(thrownBy(() => triton.bind({ ...specs, inferFunc: fixture("nowhere") }))).toMatch(
      /- inferFunc: cannot find the module file:.*nowhere\.mjs$/,
    );
  });

  it("is reported by ready, infer and the repository index when it throws", async () => {
    const handle = triton.bind({ ...specs, inferFunc: fixture("throws-while-loading") });
    const module = fixture("throws-while-loading");
    const reason = `model 'm': cannot import the module ${module}: the weights are missing (at ${module}:1:7)`;
    expect(await outcomeOf(handle.ready())).toBe(`INTERNAL ${reason}`);
    expect(await outcomeOf(echo(handle, 1))).toBe(`UNAVAILABLE model 'm' version 1 is not ready: ${reason}`);
    expect(await triton.service.repositoryIndex(false)).toEqual([
      { name: "m", version: "1", state: "UNAVAILABLE", reason },
    ]);
    expect(triton.service.isModelReady("m", "")).toBe(false);
  });

  it("is reported with the name of a missing import", async () => {
    expect(await ready("imports-what-is-missing")).toContain("there-is-no-such-module.mjs");
  });

  it("is reported when it exports no function, even when it keeps a timer", async () => {
    expect(await ready("exports-no-function")).toMatch(
      /^INVALID_ARG model 'm': module .*exports-no-function.mjs: expected a callback as default export, or a class, got object$/,
    );
  });

  it("is rejected with batching when it takes one request at a time", async () => {
    expect(await ready("sample-sum")).toBe(
      "INVALID_ARG model 'm': config.batching is true, but a callback made with sample() takes one request at a time: leave config.batching out",
    );
  });
});
