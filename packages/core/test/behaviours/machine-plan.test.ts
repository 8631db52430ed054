import { type ModelOptions, Triton, type TritonOptions } from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/core/testing";
import { describe, expect, it } from "vitest";
import { EchoModel, echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { outcomeOf } from "../../../../test/support/outcome.js";

const ONE_CORE: TritonOptions = {
  rateLimit: "deadlines",
  rateLimitResources: [{ name: "cores", count: 1 }],
};

/** Models with these configurations on one machine; their batches wait for the test. */
async function served(options: TritonOptions, ...configs: readonly ModelOptions[]) {
  const clock = new VirtualClock();
  const triton = new Triton({ clock, ...options });
  const model = new EchoModel();
  const handles = configs.map((config, i) =>
    triton.bind({
      modelName: `m${i}`,
      inputs: echoInputs,
      outputs: echoOutputs,
      inferFunc: model.callback(),
      config: { maxBatchSize: 4, ...config },
    }),
  );
  for (const handle of handles) await handle.ready();
  model.held = true;
  /** Ends the running batch after a time. */
  const step = async (ms: number) => {
    await clock.advance(ms);
    model.release();
    await clock.settle();
  };
  return { clock, triton, model, handles, step };
}

const BY_DEADLINE: ModelOptions = { batcher: { deadlines: true } };

describe("one plan for all models of a machine", () => {
  it("runs as many batches as there are cores, the most urgent of any model first", async () => {
    const { clock, model, handles, step } = await served(ONE_CORE, BY_DEADLINE, BY_DEADLINE, BY_DEADLINE);
    const [a, b, c] = handles;
    const first = echo(a!, 0, { timeoutMs: 9000 });
    await clock.settle();
    const answers = [
      first,
      echo(a!, 1, { timeoutMs: 5000 }),
      echo(b!, 2, { timeoutMs: 1000 }),
      echo(c!, 3, { timeoutMs: 3000 }),
    ];
    await clock.settle();
    expect(model.batches).toEqual([[0]]);
    for (let i = 0; i < 4; i++) await step(10);
    expect(model.batches).toEqual([[0], [2], [3], [1]]);
    expect(await Promise.all(answers)).toEqual([0, 1, 2, 3]);
  });

  it("chooses the most urgent of the requests that arrive in one turn", async () => {
    const { clock, model, handles, step } = await served(ONE_CORE, BY_DEADLINE, BY_DEADLINE);
    const answers = [echo(handles[0]!, 1, { timeoutMs: 5000 }), echo(handles[1]!, 2, { timeoutMs: 1000 })];
    await clock.settle();
    expect(model.batches).toEqual([[2]]);
    for (let i = 0; i < 2; i++) await step(10);
    await Promise.all(answers);
  });

  it("forms the batch when its turn has come, so that urgent requests that came meanwhile are in it", async () => {
    const { clock, model, handles, step } = await served(ONE_CORE, BY_DEADLINE, {
      ...BY_DEADLINE,
      maxBatchSize: 1,
    });
    const answers = [echo(handles[0]!, 0), echo(handles[1]!, 1, { timeoutMs: 5000 })];
    await clock.settle();
    answers.push(echo(handles[1]!, 2, { timeoutMs: 1000 }));
    await clock.settle();
    for (let i = 0; i < 3; i++) await step(10);
    expect(model.batches.slice(1)).toContainEqual([2]);
    expect(model.batches.flat().indexOf(2)).toBeLessThan(model.batches.flat().lastIndexOf(1) + 2);
    await Promise.all(answers);
  });

  it("does not starve a request without a deadline beside a stream of urgent ones", async () => {
    const { clock, model, handles, step } = await served(ONE_CORE, BY_DEADLINE, {});
    const patient = echo(handles[1]!, 99);
    const urgent: Promise<unknown>[] = [];
    for (let i = 0; i < 60; i++) {
      urgent.push(outcomeOf(echo(handles[0]!, i, { timeoutMs: 500 })));
      await clock.settle();
      await step(40);
    }
    expect(model.batches.flat()).toContain(99);
    for (let i = 0; i < 5; i++) await step(1);
    expect(await patient).toBe(99);
    await Promise.all(urgent);
  });

  it("lets a model run on several cores that its group asks for, and keeps them for it", async () => {
    const twoCores: ModelOptions = {
      ...BY_DEADLINE,
      instanceGroup: { rateLimiter: { resources: [{ name: "cores", count: 2 }] } },
    };
    const options = { ...ONE_CORE, rateLimitResources: [{ name: "cores", count: 2 }] };
    const { clock, model, handles, step } = await served(options, BY_DEADLINE, twoCores, BY_DEADLINE);
    const answers = [echo(handles[0]!, 0, { timeoutMs: 9000 })];
    await clock.settle();
    answers.push(echo(handles[1]!, 1, { timeoutMs: 1000 }), echo(handles[2]!, 2, { timeoutMs: 5000 }));
    await clock.settle();
    // One core is free, but it is kept for the more urgent batch, which needs both.
    expect(model.batches).toEqual([[0]]);
    for (let i = 0; i < 3; i++) await step(10);
    expect(model.batches).toEqual([[0], [1], [2]]);
    await Promise.all(answers);
  });

  it("counts no core for a model whose group has an empty rate limiter", async () => {
    const free: ModelOptions = { ...BY_DEADLINE, instanceGroup: { rateLimiter: {} } };
    const { clock, model, handles } = await served(ONE_CORE, BY_DEADLINE, free);
    const answers = [echo(handles[0]!, 0), echo(handles[1]!, 1)];
    await clock.settle();
    expect(model.batches.flat().sort()).toEqual([0, 1]);
    model.releaseAll();
    await Promise.all(answers);
  });

  it("lends the core of a model that waits for another one", async () => {
    const clock = new VirtualClock();
    const triton = new Triton({ clock, ...ONE_CORE });
    const inner = triton.bind({
      modelName: "inner",
      inputs: echoInputs,
      outputs: echoOutputs,
      inferFunc: ([request]) => [{ y: request!.inputs.x }],
      config: { maxBatchSize: 1, ...BY_DEADLINE },
    });
    const outer = triton.bind({
      modelName: "outer",
      inputs: echoInputs,
      outputs: echoOutputs,
      inferFunc: async ([request], context) => {
        const { y } = await context.infer("inner", { x: request!.inputs.x });
        return [{ y: y as never }];
      },
      config: { maxBatchSize: 1, ...BY_DEADLINE },
    });
    await Promise.all([inner.ready(), outer.ready()]);
    const answers = Promise.all([echo(outer, 7), echo(outer, 8), echo(inner, 9)]);
    await clock.settle();
    expect(await answers).toEqual([7, 8, 9]);
    await triton.close();
  });

  it("goes on after requests that were cancelled while they waited for a core, and after close", async () => {
    const { clock, triton, model, handles, step } = await served(ONE_CORE, BY_DEADLINE, BY_DEADLINE);
    const controller = new AbortController();
    const first = echo(handles[0]!, 0);
    await clock.settle();
    const given = outcomeOf(echo(handles[1]!, 1, { signal: controller.signal }));
    await clock.settle();
    controller.abort();
    expect(await given).toBe("CANCELLED the request was cancelled");
    await step(10);
    expect(await first).toBe(0);
    const last = echo(handles[1]!, 2);
    await clock.settle();
    const closed = triton.close();
    await step(10);
    expect(await last).toBe(2);
    await closed;
    expect(model.batches).toEqual([[0], [2]]);
  });

  it("refuses a model that needs more cores than there are", () => {
    const triton = new Triton(ONE_CORE);
    const bind = () =>
      triton
        .bind({
          modelName: "big",
          inputs: echoInputs,
          outputs: echoOutputs,
          inferFunc: new EchoModel().callback(),
          config: { instanceGroup: { rateLimiter: { resources: [{ name: "cores", count: 2 }] } } },
        })
        .ready();
    return expect(bind()).rejects.toThrow(
      'Resource count for "cores" is limited to 1 which will prevent scheduling of one or more model instances',
    );
  });
});
