import { getPriority } from "node:os";
import { setImmediate as turn } from "node:timers/promises";
import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { type ModelOptions, sample, Triton } from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/testing";
import { afterEach, describe, expect, it } from "vitest";
import { echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { flowers, irisModel } from "../../../../test/support/iris.js";
import { outcomeOf, outcomesOf } from "../../../../test/support/outcome.js";

const fixture = (name: string) =>
  new URL(`../../../core/test/behaviours/fixtures/${name}.mjs`, import.meta.url);

let triton: Triton;
afterEach(() => triton.close());

/** Binds a module that runs in a process or in another isolation. */
function bind(name: string, config: ModelOptions = {}, instanceGroup: object = { isolation: "process" }) {
  return triton.bind({
    modelName: name,
    inputs: echoInputs,
    outputs: echoOutputs,
    inferFunc: fixture(name),
    config: { ...config, instanceGroup },
  });
}

describe.each(["process", "worker", "inline"] as const)("a module of isolation '%s'", (isolation) => {
  const group = { isolation };

  it("runs batches and reports where it runs", async () => {
    triton = new Triton();
    const handle = bind("batch-double", {}, group);
    await handle.ready();
    expect(await Promise.all([1, 2, 3].map((value) => echo(handle, value)))).toEqual([2, 4, 6]);
    expect(handle.statistics()).toMatchObject({ inferenceCount: 3, executionCount: 1 });
    const [instance] = handle.instances();
    expect(instance!.isolation).toBe(isolation);
    const pid = Number(instance!.details.pid ?? process.pid);
    expect(pid === process.pid).toBe(isolation !== "process");
  });

  it("streams no more responses than are read", async () => {
    triton = new Triton();
    const handle = bind("counts-up", { batching: false, decoupled: true }, group);
    const all: number[] = [];
    for await (const { y } of handle.stream({ x: [5] })) all.push(y.data[0]!);
    expect(all).toEqual([1, 2, 3, 4, 5]);
    for await (const { y } of handle.stream({ x: [1_000_000] })) if (y.data[0] === 3) break;
    for await (const { y } of handle.stream({ x: [0] })) expect(y.data[0]).toBeLessThan(200);
  });

  it("calls other models for one response and for all of their responses", async () => {
    triton = new Triton();
    const upTo = sample<typeof echoInputs, typeof echoOutputs>(async function* ({
      x,
    }: {
      x: { data: Int32Array };
    }) {
      for (let i = 1; i <= x.data[0]!; i++) yield { y: Int32Array.of(i) };
    } as never);
    triton.bind({
      modelName: "up-to",
      inputs: echoInputs,
      outputs: echoOutputs,
      inferFunc: upTo,
      config: { batching: false, decoupled: true },
    });
    bind("batch-double", { batching: false }, group);
    const handle = bind("calls-others", { batching: false }, group);
    const call = async (value: number, parameters: Record<string, string | boolean | number>) =>
      (await handle.infer({ x: [value] }, { parameters })).y.data[0];
    expect(await call(4, { model: "up-to", stream: true })).toBe(10);
    expect(await call(100, { model: "up-to", stream: true, enough: 6 })).toBe(6);
    expect(await outcomeOf(call(1, { model: "nobody" }))).toBe(
      "NOT_FOUND Request for unknown model: 'nobody' is not found",
    );
  });

  it("is notified when its requests are cancelled", async () => {
    triton = new Triton();
    const handle = bind("waits-for-cancel", {}, group);
    await handle.ready();
    const before = await echo(handle, 0);
    const controllers = [new AbortController(), new AbortController()];
    const sent = outcomesOf(controllers.map(({ signal }, i) => echo(handle, i + 1, { signal })));
    await turn();
    await turn();
    for (const controller of controllers) controller.abort();
    expect(await sent).toEqual(Array(2).fill("CANCELLED the request was cancelled"));
    expect((await echo(handle, 0)) - before).toBe(102);
  });

  it("keeps the state of a sequence", async () => {
    triton = new Triton();
    const handle = bind("accumulates", { sequence: { strategy: "oldest" } }, group);
    const send = (value: number, sequenceId: number, flags: object = {}) =>
      echo(handle, value, { sequence: { id: sequenceId, ...flags } });
    expect(await send(5, 1, { start: true })).toBe(5);
    expect(await send(7, 2, { start: true })).toBe(7);
    expect(await Promise.all([send(5, 1), send(7, 2, { end: true })])).toEqual([10, 14]);
    expect(await send(1, 2, { start: true })).toBe(1);
  });
});

describe("a process instance", () => {
  it("has the priority of its host policy", async () => {
    triton = new Triton({ hostPolicies: { low: { nice: 7 }, cpu: { nice: 3 } } });
    const config = { maxBatchSize: 1 };
    const handles = [
      bind("batch-double", config, { isolation: "process", hostPolicy: "low" }),
      bind("accumulates", config, { isolation: "process" }),
    ];
    await Promise.all(handles.map((handle) => handle.ready()));
    const pids = handles.map((handle) => Number(handle.instances()[0]!.details.pid));
    expect(pids.map((pid) => getPriority(pid))).toEqual([7, 3]);
  });

  it("loses its sequences when it dies; the client gets an error and can start again", async () => {
    triton = new Triton();
    const handle = bind("accumulates", { sequence: { strategy: "oldest" } });
    await echo(handle, 1, { sequence: { id: 1, start: true } });
    expect(await outcomesOf([-1, 2].map((value) => echo(handle, value, { sequence: { id: 1 } })))).toEqual([
      "INTERNAL instance 'accumulates_0_0' of model 'accumulates' crashed: exited with code 3",
      "UNAVAILABLE an instance of model 'accumulates' failed, and the state of its sequences is lost: start the sequence again",
    ]);
    expect(await echo(handle, 4, { sequence: { id: 1, start: true } })).toBe(4);
  });

  it("gets no new sequence while it is down and another instance is up", async () => {
    const clock = new VirtualClock();
    triton = new Triton({ clock });
    const handle = bind(
      "accumulates",
      { sequence: { strategy: "oldest" } },
      { isolation: "process", count: 2 },
    );
    await handle.ready();
    const crash = outcomeOf(echo(handle, -1, { sequence: { id: 1, start: true } }));
    await clock.settle();
    expect(await crash).toContain("crashed");
    expect(handle.instances().map(({ healthy }) => healthy)).toEqual([false, true]);
    const answer = echo(handle, 6, { sequence: { id: 2, start: true } });
    await clock.settle();
    expect(await answer).toBe(6);
    expect(handle.instances()[0]!.healthy).toBe(false);
  });

  it("runs an ONNX model as a worker does", async () => {
    triton = new Triton();
    const handles = (["worker", "process"] as const).map((isolation) =>
      triton.bind({
        modelName: isolation,
        inferFunc: onnxruntime({ model: irisModel }),
        config: { instanceGroup: { isolation } },
      }),
    );
    const [input] = handles[0]!.metadata().inputs;
    const answers = handles.map((handle) =>
      handle.inferBatch({ [input!.name]: flowers.slice(0, 3) } as never),
    );
    const [first, second] = (await Promise.all(answers)).map((answer) =>
      Object.entries(answer as Record<string, { data: unknown }>).map(([name, { data }]) => [name, data]),
    );
    expect(first!.length).toBeGreaterThan(0);
    expect(second).toEqual(first);
    expect(handles[1]!.instances()[0]!.details).toEqual({
      pid: expect.stringMatching(/^[0-9]+$/),
      executionProvider: "cpu",
    });
  });

  it("may have a memory limit for native code, which a thread may not have", () => {
    triton = new Triton();
    const bindWith = (isolation: "worker" | "process") =>
      triton.bind({
        modelName: isolation,
        inferFunc: onnxruntime({ model: irisModel }),
        config: { instanceGroup: { isolation, executionTimeoutMs: 1000 } },
      });
    expect(bindWith("process").name).toBe("process");
    expect(() => bindWith("worker")).toThrow(
      "config.instanceGroup.executionTimeoutMs needs isolation 'process': native code in a thread cannot be ended",
    );
  });
});
