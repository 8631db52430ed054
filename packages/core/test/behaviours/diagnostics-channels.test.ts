import { batch, Triton } from "@tritonjs/core";
import { type DiagnosticMessages, onDiagnostics, onExecution } from "@tritonjs/core/diagnostics";
import { describe, expect, it, onTestFinished } from "vitest";
import { until } from "../../../../test/e2e/support/open-triton.js";
import { echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { sendRequest } from "../../../../test/support/send-request.js";

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
    expect(() => sendRequest(triton.service.model("failing", ""), empty, () => {})).toThrow(
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
