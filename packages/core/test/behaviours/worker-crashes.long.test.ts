import { Triton } from "@tritonjs/core";
import { serviceOf } from "@tritonjs/server";
import { VirtualClock } from "@tritonjs/testing";
import { afterEach, describe, expect, it } from "vitest";
import { type EchoHandle, echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { outcomeOf, outcomesOf } from "../../../../test/support/outcome.js";

const EXIT = -1;
const THROW_IN_A_TIMER = -2;
const THROW = -3;
const REFUSE_LOADING = "TRITONJS_TEST_REFUSE_LOADING";

let triton: Triton;
afterEach(async () => {
  delete process.env[REFUSE_LOADING];
  await triton.close();
});

async function served(options: ConstructorParameters<typeof Triton>[0] = {}, count = 1): Promise<EchoHandle> {
  triton = new Triton(options);
  const handle = triton.bind({
    modelName: "m",
    inputs: echoInputs,
    outputs: echoOutputs,
    inferFunc: new URL("./fixtures/ends-on-demand.mjs", import.meta.url),
    config: { maxBatchSize: 1, instanceGroup: { count } },
  });
  await handle.ready();
  return handle;
}

const crashed = (instance: string, why: string) =>
  `INTERNAL instance '${instance}' of model 'm' crashed: ${why}`;

describe("a worker that dies", () => {
  it("fails only its own batch after process.exit(), and waiting requests run after the restart", async () => {
    const handle = await served();
    const sent = [1, EXIT, 2, 3].map((value) => echo(handle, value));
    expect(await outcomesOf(sent)).toEqual(["done", crashed("m_0_0", "exited with code 3"), "done", "done"]);
    expect(handle.instances()[0]!.healthy).toBe(true);
  });

  it("fails only its own batch after an uncaught error, with that error", async () => {
    const handle = await served();
    expect(await outcomesOf([THROW_IN_A_TIMER, 2].map((value) => echo(handle, value)))).toEqual([
      crashed("m_0_0", "thrown in a timer"),
      "done",
    ]);
  });

  it("does not affect other instances", async () => {
    const handle = await served({}, 2);
    const sent = [EXIT, 1, 2, 3].map((value) => echo(handle, value));
    expect(await outcomesOf(sent)).toEqual([crashed("m_0_0", "exited with code 3"), "done", "done", "done"]);
  });

  it("differs from a callback that throws, which does not end the worker", async () => {
    const handle = await served();
    expect(await outcomeOf(echo(handle, THROW))).toBe("INTERNAL model 'm': thrown by the callback");
    expect([handle.instances()[0]!.healthy, await echo(handle, 4)]).toEqual([true, 4]);
  });

  it("is counted as a failure of the backend", async () => {
    const handle = await served();
    await outcomesOf([EXIT, 1].map((value) => echo(handle, value)));
    expect(await serviceOf(triton).metrics()).toMatch(
      /nv_inference_request_failure\{[^}]*"BACKEND"[^}]*\} 1/,
    );
    expect(handle.statistics().inferenceStats).toMatchObject({ success: { count: 1 }, fail: { count: 1 } });
  });
});

describe("a worker that is restarted", () => {
  it("waits for its pause first", async () => {
    const clock = new VirtualClock();
    const handle = await served({ clock });
    const sent = [EXIT, 1].map((value) => echo(handle, value));
    await clock.settle();
    expect(await outcomeOf(sent[0]!)).toBe(crashed("m_0_0", "exited with code 3"));
    expect(handle.instances()[0]!.healthy).toBe(false);
    await clock.advance(100);
    expect(await sent[1]).toBe(1);
  });

  it("fails waiting and new requests when it can no longer be loaded, and tries again", async () => {
    const clock = new VirtualClock();
    const handle = await served({ clock });
    const sent = outcomesOf(
      [EXIT, ...Array.from({ length: 30 }, () => 1)].map((value) => echo(handle, value)),
    );
    process.env[REFUSE_LOADING] = "1";
    await clock.settle();
    // Time advances until the worker has died, the pause is over and the restart has failed.
    const settled = sent.then(() => true);
    while (!(await Promise.race([settled, clock.advance(100).then(() => false)])));
    const gone = expect.stringMatching(/^UNAVAILABLE .*the weights are gone/);
    expect((await sent).slice(1)).toEqual(Array(30).fill(gone));
    expect(await outcomeOf(echo(handle, 1))).toEqual(gone);
    delete process.env[REFUSE_LOADING];
    while (!handle.instances()[0]!.healthy) await clock.advance(1000);
    const answer = echo(handle, 5);
    await clock.settle();
    expect(await answer).toBe(5);
  });

  it("takes waiting requests even when all of its batched ones were cancelled meanwhile", async () => {
    const clock = new VirtualClock();
    const handle = await served({ clock });
    const giveUp = new AbortController();
    const crash = outcomeOf(echo(handle, EXIT));
    const batched = outcomesOf([1, 2].map((value) => echo(handle, value, { signal: giveUp.signal })));
    const waiting = [3, 4].map((value) => echo(handle, value));
    await clock.settle();
    expect(await crash).toContain("crashed");
    giveUp.abort();
    await batched;
    await clock.advance(100);
    expect(await Promise.all(waiting)).toEqual([3, 4]);
  });
});
