import { type InstanceGroupOptions, sample, Triton } from "@tritonjs/core";
import type { Isolation } from "@tritonjs/core/types";
import { VirtualClock } from "@tritonjs/testing";
import { afterEach, describe, expect, it } from "vitest";
import { type EchoHandle, echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { outcomeOf, outcomesOf } from "../../../../test/support/outcome.js";

const NEVER_SETTLES = -1;
const THROWS_A_SYMBOL = -2;
const LOOPS = -3;
const EXHAUSTS_THE_HEAP = -4;
const EXITS = -5;
const ABORTS = -6;
const KILLS_ITSELF = -7;
const REJECTS_UNHEARD = -8;
const FAULTS = -9;
const CUTS_THE_LINE = -10;

let triton: Triton;
afterEach(() => triton.close());

async function served(
  isolation: Isolation,
  group: InstanceGroupOptions = {},
  options: ConstructorParameters<typeof Triton>[0] = {},
): Promise<EchoHandle> {
  triton = new Triton(options);
  const handle = triton.bind({
    modelName: "m",
    inputs: echoInputs,
    outputs: echoOutputs,
    inferFunc: new URL("./fixtures/misbehaves.mjs", import.meta.url),
    config: { maxBatchSize: 1, instanceGroup: { isolation, ...group } },
  });
  await handle.ready();
  return handle;
}

/** Outcomes of a request that misbehaves and of the next one. */
async function outcomes(handle: EchoHandle, value: number): Promise<string[]> {
  return outcomesOf([value, 1].map((one) => echo(handle, one)));
}

const crashed = "INTERNAL instance 'm_0_0' of model 'm' crashed: ";

describe.each(["inline", "worker", "process"] as const)("a callback of isolation '%s'", (isolation) => {
  it("fails its batch with the thrown value when that is not an error", async () => {
    const handle = await served(isolation);
    expect(await outcomes(handle, THROWS_A_SYMBOL)).toEqual(["INTERNAL model 'm': Symbol(no error)", "done"]);
  });

  it("holds its requests until their timeout when it never settles, and does not stop close()", async () => {
    const clock = new VirtualClock();
    const handle = await served(isolation, {}, { clock, exitTimeoutSecs: 5 });
    const sent = outcomesOf([
      echo(handle, NEVER_SETTLES, { timeoutMs: 100 }),
      echo(handle, 1, { timeoutMs: 100 }),
      echo(handle, 2),
    ]);
    await clock.advance(100);
    const closed = triton.close();
    await clock.advance(5000);
    expect(await sent).toEqual([
      "UNAVAILABLE Request timeout expired",
      "UNAVAILABLE Request timeout expired",
      "UNAVAILABLE model 'm' was stopped before the request finished",
    ]);
    await closed;
  });
});

describe.each(["worker", "process"] as const)("an instance of isolation '%s'", (isolation) => {
  it("fails its batch and restarts when it exits", async () => {
    const handle = await served(isolation);
    expect(await outcomes(handle, EXITS)).toEqual([`${crashed}exited with code 7`, "done"]);
  });

  it("fails its batch and restarts after an unhandled rejection", async () => {
    const handle = await served(isolation);
    expect(await outcomes(handle, REJECTS_UNHEARD)).toEqual([`${crashed}nobody hears this`, "done"]);
  });

  it("fails its batch and restarts when it exhausts its heap", async () => {
    const handle = await served(isolation, { heapLimitMb: 32 });
    const [failed, next] = await outcomes(handle, EXHAUSTS_THE_HEAP);
    expect(failed).toMatch(isolation === "worker" ? /memory limit/ : /crashed: (was ended by SIG|exited)/);
    expect(next).toBe("done");
  });

  it("delays neither another instance nor this thread when it blocks", async () => {
    const handle = await served(isolation, { count: 2 }, { exitTimeoutSecs: 0 });
    const blocked = outcomeOf(echo(handle, LOOPS));
    expect(await outcomesOf([1, 2, 3].map((value) => echo(handle, value)))).toEqual(["done", "done", "done"]);
    expect(handle.instances().filter(({ busy }) => busy)).toHaveLength(1);
    await triton.close();
    expect(await blocked).toBe("UNAVAILABLE model 'm' was stopped before the request finished");
  });

  it("is ended when a batch exceeds its time limit", async () => {
    const clock = new VirtualClock();
    const handle = await served(isolation, { executionTimeoutMs: 1000 }, { clock });
    const [loop, next] = [LOOPS, 1].map((value) => outcomeOf(echo(handle, value)));
    await clock.advance(1000);
    expect(await loop).toBe(
      "UNAVAILABLE instance 'm_0_0' of model 'm' was ended: its batch ran for more than 1000 ms",
    );
    await clock.advance(100);
    expect(await next).toBe("done");
  });

  it("is ended when a batch keeps running after all its requests were cancelled", async () => {
    const clock = new VirtualClock();
    const handle = await served(isolation, { abandonedTimeoutMs: 500 }, { clock });
    const loop = outcomeOf(echo(handle, LOOPS, { timeoutMs: 100 }));
    const next = outcomeOf(echo(handle, 1));
    await clock.advance(100);
    expect(await loop).toBe("UNAVAILABLE Request timeout expired");
    expect(handle.instances()[0]).toMatchObject({ busy: true, healthy: true });
    let answered = false;
    void next.then(() => {
      answered = true;
    });
    while (!answered) await clock.advance(500);
    expect(await next).toBe("done");
  });

  it("is ended by close() when it loops", async () => {
    const handle = await served(isolation, {}, { exitTimeoutSecs: 0 });
    const sent = outcomeOf(echo(handle, LOOPS));
    await triton.close();
    expect(await sent).toBe("UNAVAILABLE model 'm' was stopped before the request finished");
  });
});

describe("a process instance", () => {
  it.each([
    ["aborts", ABORTS, "was ended by SIGABRT"],
    ["is killed", KILLS_ITSELF, "was ended by SIGKILL"],
    ["crashes in native code", FAULTS, "was ended by SIGSEGV"],
  ])("fails only its batch when it %s", async (_, value, how) => {
    const handle = await served("process", { count: 2 });
    const sent = [value, 1, 2, 3].map((one) => echo(handle, one));
    expect(await outcomesOf(sent)).toEqual([`${crashed}${how}`, "done", "done", "done"]);
  });

  it("cannot send forged answers, and ends when it closes its channel", async () => {
    const handle = await served("process");
    const [failed, next] = await outcomes(handle, CUTS_THE_LINE);
    expect(failed).toContain(crashed);
    expect(next).toBe("done");
  });

  it("is replaced after each crash and gone after close()", async () => {
    const handle = await served("process");
    const pid = () => Number(handle.instances()[0]!.details.pid);
    const first = pid();
    await outcomes(handle, EXITS);
    const second = pid();
    expect(second).not.toBe(first);
    await triton.close();
    for (const gone of [first, second]) expect(() => process.kill(gone, 0)).toThrow("ESRCH");
  });
});

describe("limits that cannot be enforced", () => {
  it("are rejected by bind, all at once", () => {
    triton = new Triton();
    const bind = () =>
      triton.bind({
        modelName: "m",
        inputs: echoInputs,
        outputs: echoOutputs,
        inferFunc: sample(({ x }) => ({ y: x })),
        config: {
          batching: false,
          instanceGroup: [
            { isolation: "process" },
            { executionTimeoutMs: 5, recycle: { afterRequests: -1 } },
            { isolation: "cloud" as Isolation },
          ],
        },
      });
    expect(bind).toThrow(
      [
        "- config.instanceGroup.isolation: expected inline, which this model can run in, got 'process': " +
          "a function cannot leave its thread; export it from a module, and bind the URL of the module",
        "- config.instanceGroup.executionTimeoutMs needs isolation 'worker' or 'process': an inline instance cannot be ended",
        "- config.instanceGroup.afterRequests: expected a number above 0, got -1",
        "- config.instanceGroup.afterRequests needs isolation 'worker' or 'process': an inline instance cannot be ended",
        "- config.instanceGroup.isolation: expected one of inline, worker, process, got 'cloud'",
      ].join("\n"),
    );
  });
});
