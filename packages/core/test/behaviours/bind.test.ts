import { batch, type ModelOptions, Triton } from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/core/testing";
import { describe, expect, it } from "vitest";
import { EchoModel, echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { outcomeOf, thrownBy } from "../../../../test/support/outcome.js";

const inferFunc = batch<typeof echoInputs, typeof echoOutputs>(({ x }) => ({ y: x }));
const specs = { modelName: "m", inputs: echoInputs, outputs: echoOutputs, inferFunc } as const;

describe("bind", () => {
  it("reports all problems in one error", () => {
    const problems = thrownBy(() =>
      new Triton().bind({
        modelName: "no spaces",
        modelVersion: 0,
        inferFunc: "text" as never,
        inputs: [
          { name: "x", dtype: "FP32", shape: [0] },
          { name: "x", dtype: "FLOAT" as "FP32", shape: [1] },
        ],
        outputs: [],
        config: { maxBatchSize: 4, batcher: { preferredBatchSize: [8] }, typo: 1 } as ModelOptions,
      }),
    ).split("\n- ");
    expect(problems).toEqual([
      "INVALID_ARG cannot bind model 'no spaces':",
      expect.stringContaining("Model name can only contain alphanumeric characters"),
      "modelVersion: expected an integer of at least 1, got 0",
      expect.stringContaining("config has an unknown option 'typo'"),
      "inferFunc: expected a function, a list of functions, a URL of a module, or a backend",
      expect.stringContaining("inputs[1] 'x' has an unknown data type 'FLOAT': did you mean 'FP32'?"),
      "model 'no spaces' must have at least one output",
      expect.stringContaining("dimension must be integer >= 1, or -1"),
      "model input 'x' is given more than once",
      "dynamic batching preferred size must be <= max batch size for no spaces",
    ]);
  });

  it.each(["", ".", "..", "a b", "a/b", "ä"])("rejects the model name %j", (modelName) => {
    expect(thrownBy(() => new Triton().bind({ ...specs, modelName }))).toContain("Model name");
  });

  it("rejects a second model of the same name and version, and accepts another version", async () => {
    await using triton = new Triton();
    triton.bind(specs);
    expect(thrownBy(() => triton.bind(specs))).toContain(
      "model 'm' version 1 is already bound: choose another name or version",
    );
    triton.bind({ ...specs, modelVersion: 2 });
    await triton.infer("m", { x: [[1]] });
    expect((await triton.service.repositoryIndex(true)).map(({ version }) => version)).toEqual(["1", "2"]);
  });

  it("fails after close", async () => {
    const triton = new Triton();
    await triton.close();
    expect(thrownBy(() => triton.bind(specs))).toBe("UNAVAILABLE cannot use this Triton: it has been closed");
  });
});

describe("a model requested by name", () => {
  it("is its highest ready version, or the requested version", async () => {
    await using triton = new Triton();
    for (const modelVersion of [1, 3]) {
      triton.bind({
        ...specs,
        modelVersion,
        inferFunc: batch(({ x }) => ({ y: x.data.map(() => modelVersion) })),
      });
    }
    const version = async (modelVersion?: number) =>
      (await triton.infer("m", { x: [[0]] }, { modelVersion })).y!.data[0];
    expect([await version(), await version(1), await version(3)]).toEqual([3, 1, 3]);
    expect(await outcomeOf(version(2))).toBe(
      "NOT_FOUND Request for unknown model: 'm' version 2 is not found",
    );
    expect(await outcomeOf(triton.infer("nope", {}))).toBe(
      "NOT_FOUND Request for unknown model: 'nope' is not found",
    );
  });
});

describe("in-process requests", () => {
  it("are validated, with errors in the words of the caller", async () => {
    await using triton = new Triton();
    const handle = triton.bind(specs);
    const options = { id: "r" };
    const wrong = (inputs: Record<string, unknown>) => outcomeOf(triton.infer("m", inputs, options));
    expect(await wrong({})).toBe("INVALID_ARG model 'm': missing input 'x'");
    expect(await wrong({ z: [[1]] })).toBe("INVALID_ARG model 'm' has no input 'z': expected 'x'");
    expect(await wrong({ x: [[1, 2]] })).toBe(
      "INVALID_ARG input 'x' of model 'm': expected shape [-1,1] with the batch axis, got [1,2]",
    );
    expect(await wrong({ x: [[1], [2], [3], [4], [5]] })).toBe(
      "INVALID_ARG batch of model 'm': expected at most 4 rows, got 5",
    );
    expect(await wrong({ x: [["1"]] })).toBe(
      "INVALID_ARG input 'x' of model 'm' (INT32): expected an integer in [-2^31, 2^31), got string",
    );
    expect(handle.statistics().inferenceStats.fail.count).toBe(0);
  });

  it("return one sample without the batch axis, even from a model without one", async () => {
    await using triton = new Triton();
    const batched = triton.bind(specs);
    const whole = triton.bind({ ...specs, modelName: "whole", config: { batching: false } });
    expect((await batched.inferSample({ x: [1] })).y.shape).toEqual([1]);
    expect((await whole.inferSample({ x: [1] })).y.shape).toEqual([1]);
    expect((await batched.infer({ x: [[1]] })).y.shape).toEqual([1, 1]);
    expect(await outcomeOf(whole.inferBatch({ x: [1] }))).toBe(
      "INVALID_ARG cannot send a batch to model 'whole', which does not support batching: use infer() or inferSample()",
    );
  });
});

describe("unbind", () => {
  it("finishes running requests, rejects new ones, and frees the name", async () => {
    const clock = new VirtualClock();
    const triton = new Triton({ clock });
    const model = new EchoModel();
    const handle = await model.bind(triton);
    model.held = true;
    const running = echo(handle, 1);
    await clock.settle();
    const waiting = echo(handle, 2);
    const unbound = handle.unbind();
    await clock.settle();
    expect(await outcomeOf(echo(handle, 3))).toBe(
      "UNAVAILABLE Server is stopping, scheduler for model has stopped accepting new " + "inference requests",
    );
    model.releaseAll();
    await unbound;
    expect([await running, await waiting]).toEqual([1, 2]);
    expect(await outcomeOf(echo(handle, 4))).toBe(
      "UNAVAILABLE model 'echo' version 1 is not ready: unloaded",
    );
    const again = await new EchoModel().bind(triton);
    const answer = echo(again, 5);
    await clock.settle();
    expect(await answer).toBe(5);
  });
});
