import { context, propagation, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { TracerProvider } from "@opentelemetry/sdk-trace";
import { batch, sample, type TraceOptions, Triton, type TritonOptions } from "@tritonjs/core";
import { type DiagnosticMessages, onDiagnostics, onExecution } from "@tritonjs/core/diagnostics";
import { openTelemetry } from "@tritonjs/operations/opentelemetry";
import { deadlines } from "@tritonjs/scheduling";
import { serviceOf } from "@tritonjs/server";
import { VirtualClock } from "@tritonjs/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { until } from "../../../../test/e2e/support/open-triton.js";
import { EchoModel, echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { outcomeOf, outcomesOf } from "../../../../test/support/outcome.js";
import { sendRequest } from "../../../../test/support/send-request.js";
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

describe("traces", () => {
  it("a server without the trace option does not trace", async () => {
    const triton = new Triton();
    onTestFinished(() => triton.close());
    expect(serviceOf(triton).tracing).toBeUndefined();
    expect(serviceOf(triton).serverMetadata().extensions).not.toContain("trace");
  });

  it("a server with the trace option offers the extension, even when tracing is off", async () => {
    const triton = new Triton({ trace: {} });
    onTestFinished(() => triton.close());
    const { extensions } = serviceOf(triton).serverMetadata();
    expect(extensions.slice(-3)).toEqual(["statistics", "trace", "logging"]);
    expect(() => new Triton({ trace: { rate: -1 } })).toThrow(
      "trace.rate: expected an integer from 0 to 4294967295, got -1",
    );
  });

  it("requests of a batch are sampled separately", async () => {
    const clock = new VirtualClock();
    const { triton, traces } = traced({}, { clock });
    serviceOf(triton).tracing!.update("", { rate: 2 });
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
});

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
      config: { maxBatchSize: 1, batcher: deadlines() },
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
    const handle = triton.bind({ modelName: "m", inputs: [x], outputs: [y], inferFunc: plain });
    const { tracing } = serviceOf(triton);
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
    serviceOf(triton).tracing!.update("e", { rate: 2 });
    for (let i = 0; i < 3; i++) await ensemble.inferSample({ x: [1, 2] });
    expect((await traces()).map(({ model }) => model)).toEqual(["e", "leaf"]);
  });
});

const NAMES = [
  "tritonjs:request:start",
  "tritonjs:request:queued",
  "tritonjs:request:refused",
  "tritonjs:request:settled",
  "tritonjs:batch:formed",
  "tritonjs:model:state",
  "tritonjs:instance:restart",
] as const satisfies readonly (keyof DiagnosticMessages)[];

type Event = {
  [Name in keyof DiagnosticMessages]: [Name, DiagnosticMessages[Name]];
}[keyof DiagnosticMessages];

/** Collects the messages of all channels until the test ends. */
function collect(): Event[] {
  const events: Event[] = [];
  for (const name of NAMES) {
    onTestFinished(onDiagnostics(name, (message) => void events.push([name, message] as Event)));
  }
  return events;
}

function openTriton(): Triton {
  const triton = new Triton();
  onTestFinished(() => triton.close());
  return triton;
}

const model = (modelName: string) => ({ modelName, inputs: echoInputs, outputs: echoOutputs });

describe("diagnostics channels", () => {
  it("show a request from its start to its end, always as the same object", async () => {
    const events = collect();
    const triton = openTriton();
    const handle = triton.bind({
      ...model("shown"),
      inferFunc: batch(({ x }) => ({ y: x })),
      config: { maxBatchSize: 4 },
    });
    await Promise.all([echo(handle, 1), echo(handle, 2)]);

    expect(events.map(([name]) => name)).toEqual([
      "tritonjs:model:state",
      "tritonjs:request:start",
      "tritonjs:request:queued",
      "tritonjs:request:start",
      "tritonjs:request:queued",
      "tritonjs:batch:formed",
      "tritonjs:request:settled",
      "tritonjs:request:settled",
    ]);
    const [state, first, waits, second, , formed, settled] = events.map(([, message]) => message) as [
      DiagnosticMessages["tritonjs:model:state"],
      DiagnosticMessages["tritonjs:request:start"],
      DiagnosticMessages["tritonjs:request:queued"],
      DiagnosticMessages["tritonjs:request:start"],
      unknown,
      DiagnosticMessages["tritonjs:batch:formed"],
      DiagnosticMessages["tritonjs:request:settled"],
    ];
    expect(state).toEqual({ model: "shown", version: "1", state: "READY", reason: "" });
    expect(first.request).toMatchObject({ model: "shown", version: "1", id: "", rows: 1, callers: [] });
    expect(waits).toEqual({ request: first.request, waiting: 1 });
    expect(formed).toMatchObject({ instance: "shown_0", batchSize: 2, cut: "INSTANCE" });
    expect(formed.requests[0]).toBe(first.request);
    expect(formed.requests[1]).toBe(second.request);
    expect(settled.request).toBe(first.request);
    expect(settled.error).toBeUndefined();
    expect(settled.durationMs).toBeGreaterThanOrEqual(0);
  });

  it("tell of refused and failed requests with their errors", async () => {
    const events = collect();
    const triton = openTriton();
    const handle = triton.bind({
      ...model("failing"),
      inferFunc: batch(() => {
        throw new Error("no");
      }),
      config: { maxBatchSize: 2 },
    });
    const options = { id: "seven" };
    await expect(handle.inferSample({ x: [1] }, options)).rejects.toThrow("no");
    const empty = { ...options, inputs: new Map() };
    expect(() => sendRequest(serviceOf(triton).model("failing", ""), empty, () => {})).toThrow(
      "expected 1 inputs",
    );

    const refused = events.find(([name]) => name === "tritonjs:request:refused");
    expect(refused?.[1]).toMatchObject({ model: "failing", version: "1", id: "seven" });
    const settled = events.find(([name]) => name === "tritonjs:request:settled");
    expect(settled?.[1]).toMatchObject({ request: { id: "seven" }, error: { message: "no" } });
  });

  it("tell of an instance that restarts, and of the states of a model that is unloaded", async () => {
    const events = collect();
    const triton = openTriton();
    const handle = triton.bind({
      ...model("dying"),
      inferFunc: new URL("./fixtures/ends-on-demand.mjs", import.meta.url),
      config: { maxBatchSize: 1 },
    });
    await handle.ready();
    await expect(echo(handle, -1)).rejects.toThrow("crashed");
    const restarts = () => events.filter(([name]) => name === "tritonjs:instance:restart");
    await until(() => restarts().length === 2);
    const about = { model: "dying", version: "1", instance: "dying_0" };
    expect(restarts().map(([, message]) => message)).toEqual([
      { ...about, phase: "restarting", pauseMs: 100, error: expect.objectContaining({ code: "INTERNAL" }) },
      { ...about, phase: "restarted", pauseMs: 0, error: undefined },
    ]);
    await triton.close();
    const states = events.filter(([name]) => name === "tritonjs:model:state");
    expect(
      states.map(([, message]) => (message as DiagnosticMessages["tritonjs:model:state"]).state),
    ).toEqual(["READY", "UNLOADING", "UNAVAILABLE"]);
  });
});

describe("the tracing channel of executions", () => {
  it("has the same batch at the start and at the end", async () => {
    const seen: [string, object][] = [];
    onTestFinished(
      onExecution({
        start: (one) => void seen.push(["start", one]),
        end: (one) => void seen.push(["end", one]),
        failed: (one, error) => void seen.push([String(error), one]),
      }),
    );
    const triton = openTriton();
    const good = triton.bind({ ...model("good"), inferFunc: batch(({ x }) => ({ y: x })) });
    const bad = triton.bind({
      ...model("bad"),
      inferFunc: batch(() => {
        throw new Error("no");
      }),
    });
    expect(await echo(good, 3)).toBe(3);
    await expect(bad.inferSample({ x: [1] })).rejects.toThrow("no");
    expect(seen.map(([name]) => name)).toEqual(["start", "end", "start", "Error: no", "end"]);
    expect(seen[0]![1]).toBe(seen[1]![1]);
    expect(seen[0]![1]).toMatchObject({ model: "good", instance: "good_0", batchSize: 1 });
  });
});

type Line = readonly [level: string, message: string, about?: Readonly<Record<string, unknown>>];

/** A model of a module that logs and prints, on a server with a logger that keeps lines. */
async function openModel(isolation: "worker" | "process" | "inline", options: TritonOptions = {}) {
  const lines: Line[] = [];
  const at =
    (level: string) =>
    (...line: [string, Line[2]?]) =>
      void lines.push([level, ...line]);
  const logger = { error: at("E"), warn: at("W"), info: at("I"), debug: at("V"), takesSubjects: true };
  const triton = new Triton({ logger, logVerbose: 1, ...options });
  onTestFinished(() => triton.close());
  const handle = triton.bind({
    modelName: "m",
    inputs: echoInputs,
    outputs: echoOutputs,
    inferFunc: new URL("./fixtures/writes-lines.mjs", import.meta.url),
    config: {
      maxBatchSize: 2,
      batcher: { maxQueueDelayMicroseconds: 10_000_000, preferredBatchSize: [2] },
      instanceGroup: { isolation },
    },
  });
  await handle.ready();
  const ofModel = () =>
    lines.filter(([, , about]) => about?.model === "m" && about.module === "backend_model_instance");
  return { handle, ofModel };
}

describe("model log lines", () => {
  it.each(["worker", "process", "inline"] as const)(
    "lines of a model have the ids of the requests that it runs, in isolation '%s'",
    async (isolation) => {
      const { handle, ofModel } = await openModel(isolation);
      const logged = () => ofModel().filter(([, message]) => message === "logged");
      const about = { module: "backend_model_instance", model: "m", version: 1 };
      await handle.inferBatch({ x: [[1], [2]] }, { id: "alone" });
      expect(logged().at(-1)).toEqual(["I", "logged", { ...about, request_id: "alone" }]);
      await Promise.all([echo(handle, 1, { id: "a" }), echo(handle, 2, { id: "b" })]);
      expect(logged().at(-1)).toEqual(["I", "logged", { ...about, request_ids: ["a", "b"] }]);
      // What a module prints with console goes to the log where it does not run in this thread.
      const printed = ofModel().filter(([, message]) => message.startsWith("model 'm': "));
      const asked = { ...about, request_id: "alone" };
      expect(printed.slice(0, 5)).toEqual(
        isolation === "inline"
          ? []
          : [
              ["I", "model 'm': loads weights", about],
              ["W", "model 'm': warned { of: 1 }", asked],
              ["V", "model 'm': debugged", asked],
              ["I", expect.stringContaining("(index)"), asked],
              ["E", "model 'm': complained", asked],
            ],
      );
      await handle.inferBatch({ x: [[1], [2]] });
      expect(logged().at(-1)).toEqual(["I", "logged", about]);
    },
  );

  it("a line of a model's logger has the trace of its request", async () => {
    trace.setGlobalTracerProvider(new TracerProvider());
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    propagation.setGlobalPropagator(new W3CTraceContextPropagator());
    onTestFinished(() => {
      trace.disable();
      context.disable();
      propagation.disable();
    });
    const { handle, ofModel } = await openModel("worker", { extensions: [openTelemetry()] });
    const traceId = await trace.getTracer("app").startActiveSpan("app", async (span) => {
      await handle.inferBatch({ x: [[1], [2]] });
      return span.spanContext().traceId;
    });
    expect(ofModel().find(([, message]) => message === "logged")?.[2]).toMatchObject({ trace_id: traceId });
  });

  it("the death of a worker is a line with the instance and the reason, and so is its restart", async () => {
    const { handle, ofModel } = await openModel("worker");
    const dead = outcomeOf(handle.inferBatch({ x: [[-1], [-1]] }));
    expect(await dead).toContain("crashed: exited with code 3");
    await handle.inferBatch({ x: [[1], [2]] });
    const about = { module: "backend_model_instance", model: "m", version: 1, instance: "m_0_0" };
    const of = "instance 'm_0_0' of model 'm'";
    expect(ofModel().filter(([, , about]) => about?.instance !== undefined)).toEqual([
      ["E", `${of} version 1 restarts in 100 ms: ${of} crashed: exited with code 3`, about],
      ["I", `${of} version 1 has restarted`, about],
    ]);
  });
});

describe("request log fields", () => {
  it("a line about a request has its model, version, id and error code as fields", async () => {
    const lines: unknown[][] = [];
    const at =
      (level: string) =>
      (...line: unknown[]) =>
        lines.push([level, ...line]);
    const logger = { error: at("E"), warn: at("W"), info: at("I"), debug: at("V"), takesSubjects: true };
    const triton = new Triton({ logger, logVerbose: 1 });
    onTestFinished(() => triton.close());
    const handle = triton.bind({
      modelName: "m",
      inputs: echoInputs,
      outputs: echoOutputs,
      config: { batching: false },
      inferFunc: sample(() => {
        throw new Error("broken");
      }),
    });
    await expect(handle.infer({ x: [1] }, { id: "a" })).rejects.toThrow();
    const about = { module: "model_lifecycle", model: "m", version: 1 };
    expect(lines).toContainEqual([
      "V",
      "a request to model 'm' version 1 failed: broken",
      { ...about, code: "INTERNAL", request_id: "a" },
    ]);
  });
});
