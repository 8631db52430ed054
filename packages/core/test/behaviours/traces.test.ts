import { batch, sample, type TraceOptions, Triton, type TritonOptions } from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/core/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { EchoModel, echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { outcomesOf } from "../../../../test/support/outcome.js";
import { namesOf, readTraces, traceFile } from "../../../../test/support/trace-file.js";

const executed = [
  "REQUEST_START",
  "QUEUE_START",
  "COMPUTE_START",
  "COMPUTE_INPUT_END",
  "COMPUTE_OUTPUT_START",
  "COMPUTE_END",
  "REQUEST_END",
];

const x = { name: "x", dtype: "FP32", shape: [2] } as const;
const y = { name: "y", dtype: "FP32", shape: [2] } as const;

const plain = batch<[typeof x], [typeof y]>((inputs) => ({ y: inputs.x }));

function traced(trace: TraceOptions = {}, options: TritonOptions = {}) {
  const file = traceFile();
  const triton = new Triton({ trace: { level: "TIMESTAMPS", rate: 1, file, ...trace }, ...options });
  onTestFinished(() => triton.close());
  /** The traces, read after the server has ended. */
  const traces = async () => {
    await triton.close();
    return readTraces(file);
  };
  return { triton, traces };
}

describe("an in-process request", () => {
  it("is traced from its validation to its end, by the model's clock", async () => {
    const clock = new VirtualClock();
    const { triton, traces } = traced({}, { clock });
    const model = new EchoModel();
    const handle = await model.bind(triton, { batcher: { maxQueueDelayMicroseconds: 5000 } });
    await clock.advance(7);
    const answers = [echo(handle, 1), echo(handle, 2)];
    await clock.advance(5);
    await Promise.all(answers);
    const [first, second] = await traces();
    expect(first!.timestamps).toEqual(
      executed.map((name) => [name, name === "REQUEST_START" || name === "QUEUE_START" ? 7e6 : 12e6]),
    );
    expect(second!.timestamps).toEqual(first!.timestamps);
    const batchOfTwo = { size: 2, requests: 2, cut: "DELAY", instance: "echo_0" };
    expect([first!.batches, second!.batches]).toEqual([[batchOfTwo], [batchOfTwo]]);
  });

  it("has the cause in its trace if it is late or refused because it would be", async () => {
    const clock = new VirtualClock();
    const { triton, traces } = traced({}, { clock });
    const handle = triton.bind({
      modelName: "timed",
      inputs: [x],
      outputs: [y],
      inferFunc: batch<[typeof x], [typeof y]>(async (inputs) => {
        await new Promise<void>((done) => clock.setTimer(20, done));
        return { y: inputs.x };
      }),
      config: { maxBatchSize: 1, batcher: { deadlines: true } },
    });
    const send = (timeoutMs: number) => outcomesOf([handle.inferSample({ x: [1, 2] }, { timeoutMs })]);
    const cold = send(10);
    await clock.advance(50);
    await cold;
    for (let i = 0; i < 8; i++) {
      const sent = send(1000);
      await clock.advance(50);
      await sent;
    }
    const burst = Array.from({ length: 4 }, () => send(70));
    await clock.advance(200);
    await Promise.all(burst);
    const causes = (await traces()).map(({ late }) => late);
    expect(causes).toEqual(["cold", ...Array(8 + 3).fill(undefined), "queue"]);
  });

  it("is traced until it is cancelled", async () => {
    const clock = new VirtualClock();
    const { triton, traces } = traced({}, { clock });
    const handle = await new EchoModel().bind(triton, { batcher: { maxQueueDelayMicroseconds: 5000 } });
    const abort = new AbortController();
    const answer = handle.infer({ x: [[1]] }, { signal: abort.signal, id: "given-up" });
    await clock.advance(1);
    abort.abort();
    await expect(answer).rejects.toMatchObject({ code: "CANCELLED" });
    const [trace] = await traces();
    expect(trace).toMatchObject({ model: "echo", requestId: "given-up", batches: [] });
    expect(namesOf(trace!)).toEqual(["REQUEST_START", "QUEUE_START", "REQUEST_END"]);
  });

  it("is traced the same way when it fails", async () => {
    const { triton, traces } = traced();
    const handle = triton.bind({
      modelName: "fails",
      inputs: [x],
      outputs: [y],
      inferFunc: () => {
        throw new Error("no");
      },
    });
    await expect(handle.inferSample({ x: [1, 2] })).rejects.toThrow("no");
    const [trace] = await traces();
    expect(trace!.timestamps.map(([name]) => name)).toEqual(executed);
  });

  it("leaves only an id in the traces when it is rejected", async () => {
    const { triton, traces } = traced();
    const handle = triton.bind({ modelName: "m", inputs: [x], outputs: [y], inferFunc: plain });
    await expect(handle.inferSample({ x: [1, 2, 3] as never })).rejects.toMatchObject({
      code: "INVALID_ARG",
    });
    await handle.inferSample({ x: [1, 2] });
    const found = await traces();
    expect(found.map(({ id }) => id)).toEqual([2]);
  });

  it("has no computation in its trace when the cache answers it", async () => {
    const { triton, traces } = traced({}, { responseCache: { byteSize: 1 << 20 } });
    const handle = triton.bind({
      modelName: "m",
      inputs: [x],
      outputs: [y],
      inferFunc: plain,
      config: { responseCache: true },
    });
    for (let i = 0; i < 2; i++) await handle.inferSample({ x: [1, 2] });
    const [, hit] = await traces();
    expect(namesOf(hit!)).toEqual(["REQUEST_START", "QUEUE_START", "REQUEST_END"]);
  });

  it("is not traced when it is not sampled or tracing is off", async () => {
    const { triton, traces } = traced();
    const handle = triton.bind({
      modelName: "m",
      inputs: [x],
      outputs: [y],
      inferFunc: plain,
    });
    const { tracing } = triton.service;
    tracing!.update("m", { rate: 3 });
    for (let i = 0; i < 4; i++) await handle.inferSample({ x: [1, 2] });
    tracing!.update("m", { levels: [], rate: null });
    for (let i = 0; i < 4; i++) await handle.inferSample({ x: [1, 2] });
    expect(await traces()).toHaveLength(1);
  });
});

describe("traced tensors", () => {
  it("are the inputs and the outputs of each response", async () => {
    const { triton, traces } = traced({ level: ["TIMESTAMPS", "TENSORS"] });
    const handle = triton.bind({
      modelName: "m",
      inputs: [x],
      outputs: [y],
      config: { decoupled: true, batching: false },
      inferFunc: sample(function* (inputs) {
        yield { y: inputs.x };
        yield { y: inputs.x.data.map((value) => 2 * value) };
      }),
    });
    for await (const _ of handle.stream({ x: [1, 2.5] }));
    const [trace] = await traces();
    expect(trace!.tensors).toEqual([
      { activity: "TENSOR_QUEUE_INPUT", name: "x", data: "1,2.5" },
      { activity: "TENSOR_BACKEND_OUTPUT", name: "y", data: "1,2.5" },
      { activity: "TENSOR_BACKEND_OUTPUT", name: "y", data: "2,5" },
    ]);
    expect(namesOf(trace!)).toEqual(executed);
  });
});

describe("child requests", () => {
  it.each([
    ["of this thread", sample(async (inputs, { infer }) => infer("leaf", { x: inputs.x }))],
    ["of a worker", new URL("./fixtures/calls-others.mjs", import.meta.url)],
  ])("are traced as children: ensemble steps, and calls from models %s", async (_where, inferFunc) => {
    const { triton, traces } = traced();
    const config = { batching: false };
    const leaf = sample<typeof echoInputs, typeof echoOutputs>((inputs) => ({ y: inputs.x }));
    const specs = { inputs: echoInputs, outputs: echoOutputs, config };
    triton.bind({ modelName: "leaf", inferFunc: leaf, ...specs });
    triton.bind({ modelName: "caller", inferFunc: inferFunc as URL, ...specs });
    const ensemble = triton.bindEnsemble({
      modelName: "both",
      ...specs,
      steps: [
        { modelName: "leaf", inputMap: { x: "x" }, outputMap: { y: "middle" } },
        { modelName: "caller", inputMap: { x: "middle" }, outputMap: { y: "y" } },
      ],
    });
    await ensemble.infer({ x: [7] }, { id: "r", parameters: { model: "leaf" } });
    const found = await traces();
    expect(found.map(({ id, parentId, model }) => [id, parentId, model])).toEqual([
      [1, undefined, "both"],
      [2, 1, "leaf"],
      [3, 1, "caller"],
      [4, 3, "leaf"],
    ]);
    expect(found.map(({ requestId }) => requestId)).toEqual(["r", "r", "r", undefined]);
    expect(namesOf(found[0]!)).toEqual(["REQUEST_START", "QUEUE_START", "REQUEST_END"]);
    for (const child of found.slice(1)) expect(namesOf(child)).toEqual(executed);
  });

  it("are traced only together with their parent", async () => {
    const { triton, traces } = traced();
    triton.bind({ modelName: "leaf", inputs: [x], outputs: [y], inferFunc: plain });
    const ensemble = triton.bindEnsemble({
      modelName: "e",
      inputs: [x],
      outputs: [y],
      steps: [{ modelName: "leaf", inputMap: { x: "x" }, outputMap: { y: "y" } }],
    });
    triton.service.tracing!.update("e", { rate: 2 });
    for (let i = 0; i < 3; i++) await ensemble.inferSample({ x: [1, 2] });
    expect((await traces()).map(({ model }) => model)).toEqual(["e", "leaf"]);
  });
});

it("a server without the trace option does not trace", async () => {
  const triton = new Triton();
  onTestFinished(() => triton.close());
  expect(triton.service.tracing).toBeUndefined();
  expect(triton.service.serverMetadata().extensions).not.toContain("trace");
});

it("a server with the trace option offers the extension, even when tracing is off", async () => {
  const triton = new Triton({ trace: {} });
  onTestFinished(() => triton.close());
  const { extensions } = triton.service.serverMetadata();
  expect(extensions.slice(-3)).toEqual(["statistics", "trace", "logging"]);
  expect(() => new Triton({ trace: { rate: -1 } })).toThrow(
    "trace.rate: expected an integer from 0 to 4294967295, got -1",
  );
});

it("requests of a batch are sampled separately", async () => {
  const clock = new VirtualClock();
  const { triton, traces } = traced({}, { clock });
  triton.service.tracing!.update("", { rate: 2 });
  const handle = await new EchoModel().bind(triton);
  const answers = [1, 2, 3, 4].map((value) => echo(handle, value));
  await clock.settle();
  await outcomesOf(answers);
  const found = await traces();
  expect(found.map(({ batches }) => batches)).toEqual([
    [{ size: 4, requests: 4, cut: "SIZE", instance: "echo_0" }],
    [{ size: 4, requests: 4, cut: "SIZE", instance: "echo_0" }],
  ]);
});
