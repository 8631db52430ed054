import { batch, type ModelOptions, Triton } from "@tritonjs/core";
import { fairShares, type ShareOptions, scheduling } from "@tritonjs/scheduling";
import { VirtualClock } from "@tritonjs/testing";
import { afterEach, describe, expect, it } from "vitest";
import { echo, echoInputs, echoOutputs } from "../../../test/support/echo-model.js";
import { outcomeOf, outcomesOf, thrownBy } from "../../../test/support/outcome.js";

describe("shares", () => {
  const clock = new VirtualClock();
  let triton: Triton;

  afterEach(async () => {
    const closed = triton.close();
    await clock.advance(10_000);
    await closed;
  });

  /** A model that takes 10 ms for each batch of one row, and the values in the order in which it ran them. */
  async function bind(config: ModelOptions) {
    triton = new Triton({ clock, allowCpuMetrics: false, extensions: [scheduling()] });
    const ran: number[] = [];
    const handle = triton.bind({
      modelName: "echo",
      inputs: echoInputs,
      outputs: echoOutputs,
      inferFunc: batch<typeof echoInputs, typeof echoOutputs>(async ({ x }) => {
        ran.push(...x.data);
        await new Promise<void>((done) => clock.setTimer(10, done));
        return { y: x };
      }),
      config: { maxBatchSize: 1, ...config },
    });
    await handle.ready();
    const send = (value: number, caller: string) => echo(handle, value, { parameters: { caller } });
    return { handle, ran, send };
  }

  describe("shares", () => {
    it("let a caller with one request go before the many of another", async () => {
      const { ran, send } = await bind({ batcher: fairShares({ by: "caller" }) });
      const sent = [...[1, 2, 3, 4, 5].map((value) => send(value, "a")), send(6, "b")];
      await clock.advance(100);
      expect(await outcomesOf(sent)).toEqual(Array(6).fill("done"));
      expect(ran.indexOf(6)).toBeLessThanOrEqual(2);
    });

    it("take the name of the caller from a function", async () => {
      const { ran, handle } = await bind({
        batcher: fairShares({ by: ({ priority }) => String(priority), weights: { "2": 100 } }),
      });
      const sent = [1, 2, 3, 4].map((value) => echo(handle, value, { priority: 1 }));
      sent.push(...[5, 6, 7].map((value) => echo(handle, value, { priority: 2 })));
      await clock.advance(100);
      await Promise.all(sent);
      expect(ran.slice(1, 5)).toEqual(expect.arrayContaining([5, 6, 7]));
    });

    it("refuse the request that would run last when the queue is full", async () => {
      const { ran, send } = await bind({
        batcher: fairShares({ by: "caller", defaultQueuePolicy: { maxQueueSize: 3 } }),
      });
      const many = [1, 2, 3, 4].map((value) => outcomeOf(send(value, "a")));
      await clock.settle();
      const few = outcomeOf(send(5, "b"));
      await clock.advance(100);
      expect(await few).toBe("done");
      const outcomes = await Promise.all(many);
      expect(
        outcomes.filter((outcome) => outcome.includes("Exceeds maximum queue size")).length,
      ).toBeGreaterThan(0);
      expect(ran).toContain(5);
    });

    it("hold for models that run each request alone, by the configuration", async () => {
      const { ran, send } = await bind({
        batcher: false,
        parameters: { shares_by: "caller", shares_weights: "b=2, c=1" },
      });
      const sent = [...[1, 2, 3].map((value) => send(value, "a")), send(4, "b")];
      await clock.advance(100);
      await Promise.all(sent);
      expect(ran.indexOf(4)).toBeLessThanOrEqual(2);
    });

    it("are part of the configuration, and exclude settings that contradict them", async () => {
      const { handle } = await bind({ batcher: fairShares({ by: "x-tenant", weights: { gold: 3 } }) });
      expect(handle.config().parameters).toEqual({
        shares_by: { stringValue: "x-tenant" },
        shares_weights: { stringValue: "gold=3" },
      });
      const other = (batcher: ModelOptions["batcher"], parameters = {}) =>
        thrownBy(() =>
          triton.bind({
            modelName: "other",
            inputs: echoInputs,
            outputs: echoOutputs,
            inferFunc: batch<typeof echoInputs, typeof echoOutputs>(({ x }) => ({ y: x })),
            config: { batcher, parameters },
          }),
        );
      expect(other(fairShares({ by: "caller", weights: { a: 0 } }))).toContain(
        "share of caller 'a' of model 'other': expected a weight above 0, got 0",
      );
      expect(other({ batchBy: () => 1 }, { shares_by: "caller" })).toContain(
        "model 'other' has two batchers, 'batchBy' and 'deadlines': leave one of them out",
      );
    });
  });

  describe("shares over all models", () => {
    /** Two models that take 10 ms for each request, and the values in the order in which they ran. */
    async function bindBoth(shares: ShareOptions = { by: "caller" }) {
      triton = new Triton({ clock, allowCpuMetrics: false, extensions: [scheduling({ shares })] });
      const ran: number[] = [];
      const handles = ["one", "two"].map((modelName) =>
        triton.bind({
          modelName,
          inputs: echoInputs,
          outputs: echoOutputs,
          inferFunc: batch<typeof echoInputs, typeof echoOutputs>(async ({ x }) => {
            ran.push(...x.data);
            await new Promise<void>((done) => clock.setTimer(10, done));
            return { y: x };
          }),
          config: { maxBatchSize: 1 },
        }),
      );
      for (const handle of handles) await handle.ready();
      const send = (model: number, value: number, caller: string) =>
        echo(handles[model]!, value, { parameters: { caller } });
      return { handles, ran, send };
    }

    it("let a caller of one model go before another one that has filled the queue of the other model", async () => {
      const { ran, send } = await bindBoth();
      const sent = [1, 2, 3, 4, 5, 6].map((value) => send(0, value, "a"));
      await clock.advance(25);
      sent.push(send(1, 7, "b"));
      await clock.advance(200);
      expect(await outcomesOf(sent)).toEqual(Array(7).fill("done"));
      expect(ran.indexOf(7)).toBeLessThanOrEqual(3);
    });

    it("charge a caller at one model for what it has used of another", async () => {
      const { ran, send } = await bindBoth();
      // Times are learnt, and a is far ahead of its share.
      const sent = Array.from({ length: 30 }, (_, i) => send(0, i, "a"));
      await clock.advance(400);
      for (const [value, caller] of [
        [101, "a"],
        [102, "b"],
        [103, "b"],
      ] as const) {
        sent.push(send(1, value, caller));
      }
      await clock.advance(100);
      await Promise.all(sent);
      expect(ran.indexOf(101)).toBeGreaterThan(ran.indexOf(102));
    });

    it("show in the configurations of the models, and leave models with shares of their own alone", async () => {
      const { handles } = await bindBoth({ by: "x-tenant", weights: { gold: 2 } });
      const own = triton.bind({
        modelName: "own",
        inputs: echoInputs,
        outputs: echoOutputs,
        inferFunc: batch<typeof echoInputs, typeof echoOutputs>(({ x }) => ({ y: x })),
        config: { batcher: fairShares({ by: "other" }) },
      });
      await own.ready();
      const named = (handle: { config(): { parameters: unknown } }) => handle.config().parameters;
      expect(named(handles[0]!)).toMatchObject({
        shares_by: { stringValue: "x-tenant" },
        shares_weights: { stringValue: "gold=2" },
      });
      expect(named(own)).toMatchObject({ shares_by: { stringValue: "other" } });
    });

    it("are checked when the server is made", () => {
      triton = new Triton({ clock });
      const make = (shares: object) =>
        new Triton({ clock, extensions: [scheduling({ shares: shares as ShareOptions })] });
      expect(() => make({ by: "caller", weights: { a: 0 } })).toThrow(
        "shares.weights of caller 'a': expected a number above 0, got 0",
      );
      expect(() => make({})).toThrow("shares.by: expected 'caller', the name of a header or a function");
      expect(() => make({ by: "caller", weight: {} })).toThrow("shares");
    });
  });
});
