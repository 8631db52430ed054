import { AsyncLocalStorage } from "node:async_hooks";
import { batch, done, sample, stepwise, Triton } from "@tritonjs/core";
import { afterEach, describe, expect, it } from "vitest";
import { echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";

let triton = new Triton();
afterEach(async () => {
  await triton.close();
  triton = new Triton();
});

const tenant = new AsyncLocalStorage<string>();
const specs = { modelName: "m", inputs: echoInputs, outputs: echoOutputs } as const;
const unbatched = { ...specs, config: { batching: false } } as const;

describe("the asynchronous context of the caller", () => {
  it("is that of each request inside runInContext, and of no caller outside", async () => {
    const seen: unknown[] = [];
    const handle = triton.bind({
      ...specs,
      inferFunc: batch(async ({ x }, { requests }) => {
        seen.push(tenant.getStore());
        await Promise.resolve();
        for (const request of requests) seen.push(request.runInContext(() => tenant.getStore()));
        return { y: x };
      }),
    });
    await handle.ready();
    await Promise.all(["a", "b", "c"].map((name, i) => tenant.run(name, () => echo(handle, i))));
    expect(seen).toEqual([undefined, "a", "b", "c"]);
  });

  it("is set for each request of a plain callback, and lasts through its awaits", async () => {
    const handle = triton.bind({
      ...specs,
      inferFunc: (requests) =>
        Promise.all(
          requests.map((request) =>
            request.runInContext(async () => {
              await Promise.resolve();
              return { y: [[Number(tenant.getStore())]] };
            }),
          ),
        ),
    });
    await handle.ready();
    const sent = ["5", "7"].map((name) => tenant.run(name, () => echo(handle, 0)));
    expect(await Promise.all(sent)).toEqual([5, 7]);
  });

  it("is set for a sample callback, including each step of a generator", async () => {
    const one = triton.bind({
      ...unbatched,
      inferFunc: sample(async () => ({ y: [Number(tenant.getStore())] })),
    });
    const many = triton.bind({
      ...unbatched,
      modelName: "many",
      inferFunc: sample(async function* () {
        yield { y: [Number(tenant.getStore())] };
        await Promise.resolve();
        yield { y: [Number(tenant.getStore()) + 1] };
      }),
    });
    await tenant.run("3", async () => expect((await one.infer({ x: [0] })).y.data[0]).toBe(3));
    const values: number[] = [];
    const responses = tenant.run("4", () => many.stream({ x: [0] }));
    await tenant.run("4", async () => {
      for await (const { y } of responses) values.push(y.data[0]!);
    });
    expect(values).toEqual([4, 5]);
  });

  it("is set when a stepwise callback starts a request, but not in its steps", async () => {
    const seen: unknown[] = [];
    const handle = triton.bind({
      ...specs,
      inferFunc: stepwise<typeof echoInputs, typeof echoOutputs, { name: unknown }>({
        start: async () => {
          await Promise.resolve();
          return { name: tenant.getStore() };
        },
        step: (active) => {
          seen.push(tenant.getStore());
          return active.map(({ name }) => done({ y: [Number(name)] }));
        },
      }),
    });
    await handle.ready();
    const answers = ["5", "7"].map((name) => tenant.run(name, () => handle.stream({ x: [[0]] }).next()));
    expect((await Promise.all(answers)).map(({ value }) => value?.y.data[0])).toEqual([5, 7]);
    expect(seen.length).toBeGreaterThan(0);
    expect(seen.every((store) => store === undefined)).toBe(true);
  });

  it("follows a request from model to model and through the steps of an ensemble", async () => {
    triton.bind({
      ...unbatched,
      modelName: "who",
      inferFunc: sample(() => ({ y: [Number(tenant.getStore())] })),
    });
    const calls = triton.bind({
      ...unbatched,
      modelName: "calls",
      inferFunc: sample(({ x }, context) => context.infer<{ y: Int32Array }>("who", { x })),
    });
    const ensemble = triton.bindEnsemble({
      ...specs,
      modelName: "ensemble",
      steps: [
        { modelName: "who", inputMap: { x: "x" }, outputMap: { y: "middle" } },
        { modelName: "calls", inputMap: { x: "middle" }, outputMap: { y: "y" } },
      ],
      config: { batching: false },
    });
    await tenant.run("8", async () => {
      expect((await calls.infer({ x: [0] })).y.data[0]).toBe(8);
      expect((await ensemble.infer({ x: [0] })).y.data[0]).toBe(8);
    });
  });

  it("is not set in a worker, where runInContext is a plain call", async () => {
    const handle = triton.bind({
      ...specs,
      inferFunc: new URL("./fixtures/runs-in-context.mjs", import.meta.url),
    });
    expect(await tenant.run("x", () => echo(handle, 2))).toBe(4);
  });
});
