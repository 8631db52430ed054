import { type InstanceGroupOptions, Triton } from "@tritonjs/core";
import { type Clock, realClock } from "@tritonjs/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { type EchoHandle, echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";

async function served(
  instanceGroup: InstanceGroupOptions,
  fixture = "batch-double",
  clock: Clock = realClock,
): Promise<EchoHandle> {
  const triton = new Triton({ clock });
  onTestFinished(() => triton.close());
  const handle = triton.bind({
    modelName: "m",
    inputs: echoInputs,
    outputs: echoOutputs,
    inferFunc: new URL(`./fixtures/${fixture}.mjs`, import.meta.url),
    config: { maxBatchSize: 1, instanceGroup },
  });
  await handle.ready();
  return handle;
}

const pid = (handle: EchoHandle) => handle.instances()[0]!.details.pid;

describe("a recycled instance", () => {
  it("is replaced after the given number of requests while it works, and no request is lost", async () => {
    const handle = await served({ isolation: "process", recycle: { afterRequests: 50 } });
    const first = pid(handle);
    const pids = new Set([first]);
    let most = 0;
    let value = 0;
    while (pids.size < 3) {
      const values = Array.from({ length: 20 }, () => value++);
      expect(await Promise.all(values.map((one) => echo(handle, one)))).toEqual(values.map((one) => 2 * one));
      pids.add(pid(handle));
      most = Math.max(most, handle.instances().length);
    }
    expect(most).toBeLessThanOrEqual(2);
    expect(handle.instances()[0]!.name).toBe("m_0_0");
    expect(handle.statistics().inferenceStats).toMatchObject({
      success: { count: value },
      fail: { count: 0 },
    });
  });

  it.each(["worker", "process"] as const)(
    "(%s) is replaced when it uses too much memory",
    async (isolation) => {
      const handle = await served({ isolation, recycle: { aboveMemoryMb: 1 } }, "tells-its-worker");
      const first = await echo(handle, 1);
      expect(handle.instances()[0]!.memoryBytes).toBeGreaterThan(1024 * 1024);
      // Every instance exceeds the limit after its first batch.
      while ((await echo(handle, 1)) === first);
    },
  );

  it("keeps its place when its replacement fails to load", async () => {
    const handle = await served({ isolation: "worker", recycle: { afterRequests: 1 } }, "ends-on-demand");
    const warned = new Promise<string>((resolve) => {
      process.once("warning", ({ message }) => resolve(message));
    });
    process.env.TRITONJS_TEST_REFUSE_LOADING = "1";
    onTestFinished(() => {
      delete process.env.TRITONJS_TEST_REFUSE_LOADING;
    });
    await echo(handle, 1);
    expect(await warned).toEqual(
      expect.stringMatching(
        /^instance 'm_0_0' of model 'm' version 1 could not be replaced: .*the weights are gone/,
      ),
    );
    expect(await echo(handle, 2)).toBe(2);
  });

  it("is replaced by another attempt after half a minute, without a timer", async () => {
    let aheadMs = 0;
    const armed = new Set<object>();
    const clock: Clock = {
      ...realClock,
      now: () => realClock.now() + aheadMs,
      setTimer(delayMs, run) {
        const mark = {};
        armed.add(mark);
        const timer = realClock.setTimer(delayMs, () => {
          armed.delete(mark);
          run();
        });
        return {
          cancel: () => {
            armed.delete(mark);
            timer.cancel();
          },
        };
      },
    };
    onTestFinished(() => {
      delete process.env.TRITONJS_TEST_REFUSE_LOADING;
    });
    const warning = () => new Promise((resolve) => process.once("warning", resolve));
    const recycle = { afterRequests: 1 };
    const handle = await served({ isolation: "worker", recycle }, "ends-on-demand", clock);
    process.env.TRITONJS_TEST_REFUSE_LOADING = "1";
    const first = warning();
    await echo(handle, 1);
    await first;
    await echo(handle, 2);
    expect(armed.size).toBe(0);
    aheadMs = 30_000;
    const second = warning();
    await echo(handle, 3);
    expect(String(await second)).toContain("could not be replaced");
  });
});
