import { Registry } from "prom-client";
import { afterAll, describe, expect, it } from "vitest";
import { batch, type ModelOptions, Triton, type TritonOptions } from "../../../src/index.js";

/* The compiler reports these mistakes. Callers without TypeScript get the texts. */

describe("new Triton() names an option of the wrong type", () => {
  it.each([
    [{ metrics: false }, "new Triton(), option 'metrics': expected an object, got false"],
    [
      { metrics: new Registry() },
      "metrics of new Triton(): expected an object with registry, labels, got an object of class Registry",
    ],
    [
      { metrics: { label: {} } },
      "metrics of new Triton() has an unknown option 'label': did you mean 'labels'?",
    ],
    [{ allowHttp: "no" }, "new Triton(), option 'allowHttp': expected a boolean, got the string 'no'"],
    [
      { exitTimeoutSecs: "5" },
      "new Triton(), option 'exitTimeoutSecs': expected a number, got the string '5'",
    ],
    [{ exitTimeoutSecs: Number.NaN }, "new Triton(), option 'exitTimeoutSecs': expected a number, got NaN"],
    [{ httpPort: "8080" }, "new Triton(), option 'httpPort': expected a number, got the string '8080'"],
    [{ logger: "console" }, "new Triton(), option 'logger': expected an object, got the string 'console'"],
    [{ modelRepository: 5 }, "new Triton(), option 'modelRepository': expected an array or a string, got 5"],
  ])("%o", (options, message) => {
    expect(() => new Triton(options as TritonOptions)).toThrow(
      expect.objectContaining({ code: "INVALID_ARG", reason: "INVALID_OPTION", message }),
    );
  });
});

const triton = new Triton();
afterAll(() => triton.close());

const bind = (modelName: string, config: unknown) =>
  triton.bind({
    modelName,
    inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
    inferFunc: batch(({ x }) => ({ y: x })),
    config: config as ModelOptions,
  });

describe("bind names an option of the wrong type", () => {
  it.each([
    [
      { batcher: { preferredBatchSize: 8 } },
      "config.batcher, option 'preferredBatchSize': expected an array, got 8",
    ],
    [
      { batching: { maxQueueDelayMicroseconds: 5 } },
      "config.batching: expected a boolean, got object: the options of the batcher are config.batcher",
    ],
    [{ maxBatchSize: "4" }, "config, option 'maxBatchSize': expected a number, got the string '4'"],
    [
      { batcher: { defaultQueuePolicy: { maxQueueSize: "4" } } },
      "a queue policy of config.batcher, option 'maxQueueSize': expected a number, got the string '4'",
    ],
    [
      { batcher: true },
      "config.batcher: expected an object of options such as { maxQueueDelayMicroseconds: ... }, got true",
    ],
    [
      { batcher: 5 },
      "config.batcher: expected an object of options such as { maxQueueDelayMicroseconds: ... }, got 5",
    ],
    [
      { instanceGroup: { count: "2" } },
      "config.instanceGroup, option 'count': expected a number, got the string '2'",
    ],
    [
      { instanceGroup: [null] },
      "config.instanceGroup: expected an object of options such as { name: ... }, got null",
    ],
    [
      { sequence: true },
      "config.sequence: expected an object of options such as { strategy: ... }, got true",
    ],
    [null, "bind, option 'config': expected an object, got null"],
  ])("%o", (config, problem) => {
    expect(() => bind("wrong", config)).toThrow(
      expect.objectContaining({
        code: "INVALID_ARG",
        reason: "INVALID_CONFIG",
        message: `cannot bind model 'wrong':\n- ${problem}`,
      }),
    );
  });
});

describe("a call names an option of the wrong type", () => {
  const model = bind("copy", {});

  it.each([
    [{ timeout: 100 }, "a call of model 'copy' has an unknown option 'timeout': did you mean 'timeoutMs'?"],
    [{ timeOutMs: 5 }, "a call of model 'copy' has an unknown option 'timeOutMs': did you mean 'timeoutMs'?"],
    [
      { priority: "high" },
      "a call of model 'copy', option 'priority': expected a number, got the string 'high'",
    ],
    [{ id: 5 }, "a call of model 'copy', option 'id': expected a string, got 5"],
    [{ signal: null }, "a call of model 'copy', option 'signal': expected an object, got null"],
    [{ timeoutMs: "5" }, "timeoutMs: expected a number of milliseconds, got string"],
  ])("%o", async (options, message) => {
    const expected = expect.objectContaining({ code: "INVALID_ARG", reason: "INVALID_OPTION", message });
    await expect(model.infer({ x: [[1]] }, options as object)).rejects.toThrow(expected);
    await expect(model.inferSample({ x: [1] }, options as object)).rejects.toThrow(expected);
    await expect(triton.infer("copy", { x: [[1]] }, options as object)).rejects.toThrow(expected);
    await expect(model.stream({ x: [[1]] }, options as object).next()).rejects.toThrow(expected);
  });

  it("and takes options that are undefined", async () => {
    const { y } = await model.infer({ x: [[1]] }, { signal: undefined, id: undefined } as object);
    expect(y.toArray()).toEqual([[1]]);
  });
});
