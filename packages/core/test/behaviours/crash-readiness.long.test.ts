import { Triton, type TritonOptions } from "@tritonjs/core";
import { serviceOf } from "@tritonjs/server";
import { VirtualClock } from "@tritonjs/testing";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import { echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { outcomeOf } from "../../../../test/support/outcome.js";

const EXIT = -1;
const REFUSE_LOADING = "TRITONJS_TEST_REFUSE_LOADING";

afterEach(() => {
  delete process.env[REFUSE_LOADING];
});

/** A model whose only instance can be made to crash. */
async function served(isolation: "worker" | "process", options: TritonOptions = {}) {
  const clock = new VirtualClock();
  const logger = { error() {}, warn() {}, info() {}, debug() {} };
  const triton = new Triton({ clock, logger, ...options });
  onTestFinished(() => triton.close());
  const handle = triton.bind({
    modelName: "m",
    inputs: echoInputs,
    outputs: echoOutputs,
    inferFunc: new URL("./fixtures/ends-on-demand.mjs", import.meta.url),
    config: { maxBatchSize: 1, instanceGroup: { isolation } },
  });
  await handle.ready();
  const service = serviceOf(triton);
  return {
    clock,
    handle,
    /** Sends the request that ends the instance. */
    async crash() {
      const outcome = outcomeOf(echo(handle, EXIT));
      await clock.settle();
      return outcome;
    },
    /** Readiness of the server and of the model, and the row of the index. */
    async seen() {
      const [row] = await service.repositoryIndex(false);
      const { ready, reason } = await service.modelReadiness("m", "");
      const onlyReady = (await service.repositoryIndex(true)).length;
      return [
        await service.checkReady(),
        service.isModelReady("m", ""),
        ready,
        reason,
        row?.state,
        onlyReady,
      ];
    },
    /** Restarts so far, as the metrics page has them. */
    async restarts() {
      const page = await service.metrics();
      return Number(/^tritonjs_instance_restarts_total\{.*\} (\d+)$/m.exec(page)?.[1]);
    },
  };
}

const READY = [true, true, true, "", "READY", 1];

describe.each(["worker", "process"] as const)(
  "a model whose instance crashes in isolation '%s'",
  (isolation) => {
    it("stays ready while requests wait for the first restart", async () => {
      const { clock, handle, crash, seen, restarts } = await served(isolation);
      expect(await restarts()).toBe(0);
      expect(await crash()).toContain("crashed");
      expect(await seen()).toEqual(READY);
      while (!handle.instances()[0]!.healthy) await clock.advance(1000);
      expect(await seen()).toEqual(READY);
      expect(await restarts()).toBe(1);
    });

    it.each(["model", "server"] as const)(
      "is not ready when it cannot be restarted; crashReadiness '%s'",
      async (crashReadiness) => {
        const { clock, handle, crash, seen, restarts } = await served(isolation, { crashReadiness });
        process.env[REFUSE_LOADING] = "1";
        expect(await crash()).toContain("crashed");
        while ((await restarts()) < 3) await clock.advance(100);
        const why = expect.stringContaining("the weights are gone");
        expect(await seen()).toEqual([crashReadiness === "model", false, false, why, "UNAVAILABLE", 0]);
        delete process.env[REFUSE_LOADING];
        while (!handle.instances()[0]!.healthy) await clock.advance(1000);
        expect(await seen()).toEqual(READY);
      },
    );
  },
);
