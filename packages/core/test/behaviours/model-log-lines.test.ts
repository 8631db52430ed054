import { context, propagation, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { TracerProvider } from "@opentelemetry/sdk-trace";
import { Triton, type TritonOptions } from "@tritonjs/core";
import { openTelemetry } from "@tritonjs/core/opentelemetry";
import { expect, it, onTestFinished } from "vitest";
import { echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { outcomeOf } from "../../../../test/support/outcome.js";

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
  const { handle, ofModel } = await openModel("worker", { tracer: openTelemetry() });
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
