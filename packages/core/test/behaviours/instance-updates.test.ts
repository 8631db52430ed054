import { setImmediate as turn } from "node:timers/promises";
import { batch, Triton } from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { EchoModel, echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { outcomeOf, outcomesOf } from "../../../../test/support/outcome.js";

const specs = { modelName: "m", inputs: echoInputs, outputs: echoOutputs } as const;

/** A model whose batches wait for the test, on a virtual clock. */
async function held(count: number) {
  const clock = new VirtualClock();
  const triton = new Triton({ clock });
  const model = new EchoModel();
  const handle = triton.bind({
    ...specs,
    inferFunc: model.callback(),
    config: { maxBatchSize: 1, instanceGroup: { count } },
  });
  await handle.ready();
  model.held = true;
  const names = () => handle.instances().map(({ name }) => name);
  return { clock, model, handle, names };
}

describe("the number of instances", () => {
  it("grows while they work, and waiting requests use the new ones at once", async () => {
    const { clock, model, handle, names } = await held(1);
    const answers = [1, 2, 3].map((value) => echo(handle, value));
    await clock.settle();
    expect(model.batches).toEqual([[1]]);
    await handle.updateInstances(3);
    await clock.settle();
    expect([model.batches, names()]).toEqual([
      [[1], [2], [3]],
      ["m_0_0", "m_0_1", "m_0_2"],
    ]);
    expect(handle.config().instanceGroup[0]!.count).toBe(3);
    model.releaseAll();
    expect(await Promise.all(answers)).toEqual([1, 2, 3]);
  });

  it("shrinks as surplus instances finish, without giving them new batches", async () => {
    const { clock, model, handle, names } = await held(3);
    const answers = [1, 2, 3, 4, 5].map((value) => echo(handle, value));
    await clock.settle();
    await handle.updateInstances(1);
    expect(names()).toEqual(["m_0_0", "m_0_1", "m_0_2"]);
    // The first instance takes the next request; the others have none and end.
    for (const left of [3, 2, 1]) {
      model.release();
      await clock.settle();
      await turn();
      expect(names()).toHaveLength(left);
    }
    expect(model.batches).toEqual([[1], [2], [3], [4]]);
    model.releaseAll();
    await clock.settle();
    expect(await Promise.all(answers)).toEqual([1, 2, 3, 4, 5]);
    expect(names()).toEqual(["m_0_0"]);
  });

  it("changes by groups, and instances of unchanged groups stay", async () => {
    const { handle, names } = await held(2);
    await handle.updateInstances([{ count: 1 }, { name: "spare", passive: true }]);
    await turn();
    expect(names()).toEqual(["m_0_0", "spare_0"]);
    expect(handle.instances().map(({ passive }) => passive)).toEqual([false, true]);
  });

  it("stays the same when a new instance fails to load", async () => {
    const triton = new Triton();
    onTestFinished(() => triton.close());
    const handle = triton.bind({
      ...specs,
      inferFunc: new URL("./fixtures/ends-on-demand.mjs", import.meta.url),
      config: { maxBatchSize: 1 },
    });
    await handle.ready();
    process.env.TRITONJS_TEST_REFUSE_LOADING = "1";
    expect(await outcomeOf(handle.updateInstances(2))).toMatch(/^INTERNAL .*the weights are gone/);
    delete process.env.TRITONJS_TEST_REFUSE_LOADING;
    expect(handle.config().instanceGroup[0]!.count).toBe(1);
    expect(handle.instances()).toHaveLength(1);
    await handle.updateInstances(2);
    expect(handle.instances()).toHaveLength(2);
  });

  it("cannot be changed to a number that the model does not allow", async () => {
    const { handle } = await held(1);
    const list = new Triton().bind({ ...specs, inferFunc: [new EchoModel().callback()] });
    await list.ready();
    expect(await outcomeOf(list.updateInstances(2))).toContain(
      "inferFunc has 1 functions, one for each instance, but config.instanceGroup asks for 2 instances",
    );
    expect(await outcomeOf(handle.updateInstances(-1))).toContain("expected a count of at least 1, got -1");
    expect(await outcomeOf(handle.updateInstances({ isolation: "process" }))).toContain(
      "config.instanceGroup.isolation: expected inline, which this model can run in, got 'process'",
    );
    await handle.unbind();
    expect(await outcomeOf(handle.updateInstances(2))).toMatch(/^UNAVAILABLE/);
  });

  it("changes under sequences: each stays in its instance, and new ones use the others", async () => {
    const seen: string[] = [];
    const triton = new Triton();
    onTestFinished(() => triton.close());
    const handle = triton.bind({
      ...specs,
      inferFunc: async (requests, { instanceName }) => {
        for (const { correlationId } of requests) seen.push(`${correlationId} at ${instanceName}`);
        return requests.map(({ inputs }) => ({ y: inputs.x }));
      },
      config: {
        maxBatchSize: 1,
        sequence: { strategy: "direct" },
        instanceGroup: [{ name: "a" }, { name: "b" }],
      },
    });
    const send = (sequenceId: number, flags: object = {}) =>
      echo(handle, 1, { sequence: { id: sequenceId, ...flags } });
    await send(1, { start: true });
    await send(2, { start: true });
    await handle.updateInstances([{ name: "b" }, { name: "c", hostPolicy: "new" }]);
    expect(handle.instances()).toHaveLength(3);
    await send(3, { start: true });
    await Promise.all([send(1), send(2), send(3)]);
    const gone = new Set(seen.slice(0, 2)).size;
    expect([gone, seen.slice(2).sort()]).toEqual([2, ["1 at a_0", "2 at b_0", "3 at c_0", "3 at c_0"]]);
    await send(2, { end: true });
    await turn();
    expect(handle.instances().map(({ name }) => name)).toEqual(["a_0", "c_0"]);
    await send(1, { end: true });
    await send(4, { start: true, end: true });
    expect(seen.at(-1)).toBe("4 at a_0");
  });
});

describe("passive instances", () => {
  it("are loaded and take no requests", async () => {
    const seen = new Set<string>();
    const triton = new Triton();
    onTestFinished(() => triton.close());
    const inferFunc = batch<typeof echoInputs, typeof echoOutputs>(({ x }, { instanceName }) => {
      seen.add(instanceName);
      return { y: x };
    });
    const bind = (modelName: string, passive: boolean) =>
      triton.bind({
        ...specs,
        modelName,
        inferFunc,
        config: { maxBatchSize: 1, instanceGroup: [{ passive: true, count: 2 }, { passive }] },
      });
    const handle = bind("m", false);
    await Promise.all([1, 2, 3, 4].map((value) => echo(handle, value)));
    expect([...seen]).toEqual(["m_1_0"]);
    expect(handle.instances().map(({ healthy }) => healthy)).toEqual([true, true, true]);
    expect(await outcomesOf([echo(bind("none", true), 1)])).toEqual([
      "UNAVAILABLE all instances are passive, so the model cannot take requests: set passive: false on one",
    ]);
  });
});

it.each(["worker", "process"] as const)(
  "no instance (%s) is left when close interrupts changes",
  async (isolation) => {
    const kind = isolation === "process" ? "ProcessWrap" : "MessagePort";
    const alive = () => process.getActiveResourcesInfo().filter((resource) => resource === kind).length;
    const before = alive();
    const triton = new Triton();
    const handle = triton.bind({
      ...specs,
      inferFunc: new URL("./fixtures/batch-double.mjs", import.meta.url),
      config: { maxBatchSize: 1, instanceGroup: { isolation } },
    });
    await handle.ready();
    const changes = Promise.all([2, 3, 1, 2].map((count) => outcomeOf(handle.updateInstances(count))));
    await triton.close();
    // Node counts the handle of an ended process until the end of the turn.
    await turn();
    await turn();
    expect(alive()).toBe(before);
    await changes;
    expect(alive()).toBe(before);
  },
);
