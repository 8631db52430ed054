import { batch, Triton } from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/core/testing";
import { describe, expect, it } from "vitest";
import { echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { SeededRandom } from "../../../../test/support/seeded-random.js";

describe("under random loads, one plan with shares over all models", () => {
  it.each([1, 2])(
    "ends each request once, runs none that was refused, starves none, keeps order and budget (seed %i)",
    async (seed) => {
      const random = new SeededRandom(seed);
      const clock = new VirtualClock();
      const cores = 1 + random.below(2);
      const triton = new Triton({
        clock,
        allowCpuMetrics: false,
        rateLimit: "deadlines",
        rateLimitResources: [{ name: "cores", count: cores }],
        ...(seed % 2 === 0 && { shares: { by: "caller", weights: { gold: 3 } } }),
      });
      let running = 0;
      const ran = new Set<number>();
      const handles = [0, 1, 2].map((model) => {
        const fixedMs = random.below(10);
        return triton.bind({
          modelName: `m${model}`,
          inputs: echoInputs,
          outputs: echoOutputs,
          inferFunc: batch<typeof echoInputs, typeof echoOutputs>(async ({ x }) => {
            expect(++running).toBeLessThanOrEqual(cores);
            for (const value of x.data) {
              expect(ran.has(value)).toBe(false);
              ran.add(value);
            }
            await new Promise<void>((done) => clock.setTimer(fixedMs + x.data.length, done));
            running--;
            return { y: x };
          }),
          config: {
            maxBatchSize: 1 + random.below(8),
            batcher: model === 2 ? {} : { deadlines: true, preserveOrdering: model === 1 },
          },
        });
      });
      for (const handle of handles) await handle.ready();
      const ended = new Map<number, string>();
      const refused: number[] = [];
      for (let i = 0; i < 400; i++) {
        const timeoutMs = [undefined, 5, 20, 60, 300][random.below(5)];
        const controller = new AbortController();
        const options = {
          signal: controller.signal,
          parameters: { caller: random.chance(0.3) ? "gold" : "other" },
          ...(timeoutMs !== undefined && { timeoutMs }),
        };
        void echo(handles[random.below(3)]!, i, options).then(
          (y) => {
            expect([y, ended.has(i)]).toEqual([i, false]);
            ended.set(i, "answer");
          },
          (error) => {
            expect(ended.has(i)).toBe(false);
            ended.set(i, timeoutMs === undefined ? error.code : "limited");
            if (error.reason === "DEADLINE_TOO_CLOSE") {
              expect(ran.has(i)).toBe(false);
              refused.push(i);
            }
          },
        );
        if (random.chance(0.05)) controller.abort();
        if (random.chance(0.5)) await clock.advance(random.below(12));
      }
      await clock.advance(60_000);
      expect(ended.size).toBe(400);
      for (const i of refused) expect(ran.has(i)).toBe(false);
      // A request without a limit is answered, unless its caller gave it up.
      expect([...ended.values()].filter((end) => !["answer", "limited", "CANCELLED"].includes(end))).toEqual(
        [],
      );
      expect(running).toBe(0);
      const closed = triton.close();
      await clock.advance(1000);
      await closed;
    },
  );

  it("gives callers that send too much the sum of their shares, over all models", async () => {
    const clock = new VirtualClock();
    const triton = new Triton({
      clock,
      allowCpuMetrics: false,
      rateLimit: "deadlines",
      rateLimitResources: [{ name: "cores", count: 1 }],
      shares: { by: "caller", weights: { gold: 3 } },
    });
    const served = { gold: 0, other: 0 };
    const handles = [10, 20].map((ms) =>
      triton.bind({
        modelName: `takes-${ms}`,
        inputs: echoInputs,
        outputs: echoOutputs,
        inferFunc: batch<typeof echoInputs, typeof echoOutputs>(async ({ x }) => {
          served[x.data[0] === 1 ? "gold" : "other"] += ms;
          await new Promise<void>((done) => clock.setTimer(ms, done));
          return { y: x };
        }),
        config: { maxBatchSize: 1 },
      }),
    );
    for (const handle of handles) await handle.ready();
    const sent: Promise<unknown>[] = [];
    // What a request costs is learnt from the batches that have run.
    for (let i = 0; i < 10; i++) sent.push(echo(handles[i % 2]!, 0, { parameters: { caller: "first" } }));
    await clock.advance(1000);
    served.other = 0;
    // Both have more than 10 s of work; gold uses the slow model only.
    for (let i = 0; i < 600; i++) sent.push(echo(handles[1]!, 1, { parameters: { caller: "gold" } }));
    for (let i = 0; i < 1200; i++) sent.push(echo(handles[i % 2]!, 0, { parameters: { caller: "other" } }));
    await clock.advance(8000);
    expect(served.gold / (served.gold + served.other)).toBeCloseTo(0.75, 1);
    await clock.advance(60_000);
    await Promise.all(sent);
    const closed = triton.close();
    await clock.advance(1000);
    await closed;
  });
});
