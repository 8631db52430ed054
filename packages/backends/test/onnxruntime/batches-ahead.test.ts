import { setImmediate as turn } from "node:timers/promises";
import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { Triton, type TritonOptions } from "@tritonjs/core";
import { afterEach, describe, expect, it } from "vitest";
import { flowers, irisModel } from "../../../../test/support/iris.js";
import { outcomeOf } from "../../../../test/support/outcome.js";

let triton: Triton;
afterEach(() => triton.close());

async function served(isolation: "worker" | "process", options: TritonOptions = {}) {
  triton = new Triton(options);
  const handle = triton.bind({
    modelName: "iris",
    inferFunc: onnxruntime({ model: irisModel }),
    config: { maxBatchSize: 2, instanceGroup: { isolation } },
  });
  await handle.ready();
  const [input] = handle.metadata().inputs;
  const ask = async (flower: number): Promise<unknown[]> => {
    const answer = await handle.inferSample({ [input!.name]: flowers[flower]! } as never);
    return Object.values(answer as Record<string, { data: unknown }>).map(({ data }) => data);
  };
  return { handle, ask };
}

describe("a model file whose worker takes batches ahead", () => {
  it("answers each request with its own rows", async () => {
    const { handle, ask } = await served("worker");
    const apart: unknown[] = [];
    for (let flower = 0; flower < 20; flower++) apart.push(await ask(flower));
    const before = handle.statistics().executionCount;
    const together = await Promise.all(Array.from({ length: 20 }, (_, flower) => ask(flower)));
    expect(together).toEqual(apart);
    expect(handle.statistics().executionCount - before).toBeLessThan(20);
  });

  it.skipIf(process.platform === "win32")(
    "fails one batch when its process dies, and runs the other one after the restart",
    async () => {
      const { handle, ask } = await served("process");
      const expected = [await ask(2), await ask(3)];
      const pid = Number(handle.instances()[0]!.details.pid);
      process.kill(pid, "SIGSTOP");
      const outcomes = [0, 1].map((flower) => outcomeOf(ask(flower)));
      const answers = [2, 3, 4, 5].map((flower) => ask(flower));
      const running = () => handle.queue().instances[0]!.running.map(({ rows }) => rows);
      while (running().length < 2) await turn();
      expect(running()).toEqual([2, 2]);
      process.kill(pid, "SIGKILL");
      for (const outcome of await Promise.all(outcomes)) expect(outcome).toMatch(/^INTERNAL .* crashed: /);
      expect((await Promise.all(answers)).slice(0, 2)).toEqual(expected);
      expect(handle.instances()[0]!.healthy).toBe(true);
    },
  );

  it.skipIf(process.platform === "win32")(
    "fails both batches when the model is closed meanwhile",
    async () => {
      const { handle, ask } = await served("process", { exitTimeoutSecs: 0 });
      process.kill(Number(handle.instances()[0]!.details.pid), "SIGSTOP");
      const outcomes = [0, 1, 2, 3].map((flower) => outcomeOf(ask(flower)));
      while (handle.queue().instances[0]!.running.length < 2) await turn();
      await triton.close();
      for (const outcome of await Promise.all(outcomes)) expect(outcome).toMatch(/^(UNAVAILABLE|INTERNAL) /);
    },
  );
});
