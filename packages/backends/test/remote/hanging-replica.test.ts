import { setMaxListeners } from "node:events";
import { errorFor, Tensor } from "@tritonjs/protocol";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { InferResult } from "../../../client/src/infer-result.js";
import { RemoteCalls } from "../../src/remote/remote-executor.js";
import type { RemoteCall, RemoteOptions, ReplicaClient } from "../../src/remote/replica-client.js";
import { remoteSettings } from "../../src/remote/replica-client.js";
import { ReplicaPool } from "../../src/remote/replica-pool.js";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const tensor = Tensor.fromElements("FP32", [1], Float32Array.of(1));

/** A replica that can be stopped, as SIGSTOP stops a process: it takes calls, and answers nothing. */
class StoppableReplica implements ReplicaClient {
  stopped = false;
  /** Milliseconds that an answer takes. */
  takesMs = 50;
  begun = 0;
  cancelled = 0;
  probes = 0;
  readonly stream = undefined;

  async infer({ id = "", signal }: RemoteCall): Promise<InferResult> {
    this.begun++;
    await new Promise<void>((resolve, reject) => {
      const cancel = (): void => {
        this.cancelled++;
        reject(errorFor("CANCELLED", "cancelled"));
      };
      signal?.addEventListener("abort", cancel);
      if (this.stopped) return;
      setTimeout(() => {
        signal?.removeEventListener("abort", cancel);
        resolve();
      }, this.takesMs);
    });
    const tensors = new Map([["y", tensor]]);
    const modelVersion = "1";
    return new InferResult({
      ...{ id, modelName: "m", modelVersion, parameters: {}, tensors },
      ...{ sharedMemoryOutputs: new Map(), response: undefined },
    });
  }

  async isReady({ timeoutMs }: { readonly timeoutMs?: number }): Promise<boolean> {
    this.probes++;
    if (!this.stopped) return true;
    await new Promise((resolve) => setTimeout(resolve, timeoutMs));
    throw errorFor("CLIENT_TIMEOUT", "no answer in time");
  }

  async describe(): Promise<never> {
    throw new Error("not described here");
  }

  close(): void {}
}

/** A closed loop of eight calls on two replicas, of which one is stopped in the middle. */
async function underLoad(options: Partial<RemoteOptions> = {}, names = ["grpc://a", "grpc://b"]) {
  const replicas: StoppableReplica[] = [];
  const settings = remoteSettings({ urls: names, model: "m", ...options });
  const pool = new ReplicaPool(settings, () => {
    const replica = new StoppableReplica();
    replicas.push(replica);
    return replica;
  });
  await pool.firstServing();
  await vi.advanceTimersByTimeAsync(0);
  const calls = new RemoteCalls(pool);
  const { signal } = new AbortController();
  setMaxListeners(0, signal);
  const limits = { signal, leftMs: () => Number.POSITIVE_INFINITY };
  let isOpen = true;
  let longestMs = 0;
  const loop = async (): Promise<void> => {
    while (isOpen) {
      const begun = Date.now();
      await calls.infer(undefined, { inputs: {} }, limits);
      longestMs = Math.max(longestMs, Date.now() - begun);
    }
  };
  const loops = Array.from({ length: 8 }, loop);
  const end = async (): Promise<number> => {
    isOpen = false;
    await vi.runAllTimersAsync();
    await Promise.all(loops);
    pool.close();
    return longestMs;
  };
  return { replicas, pool, end, longest: () => longestMs };
}

test("calls of a replica that hangs are answered by another one in 4 s, and it is back when it answers", async () => {
  const { replicas, pool, end } = await underLoad();
  const [one, other] = replicas as [StoppableReplica, StoppableReplica];
  await vi.advanceTimersByTimeAsync(3_500);
  // Only the probe at the start: a replica that answers calls needs none.
  expect(one.probes).toBe(1);
  one.stopped = true;
  await vi.advanceTimersByTimeAsync(5_000);
  expect(pool.replicas.map(({ serving, outstanding }) => [serving, outstanding])).toEqual([
    [false, 0],
    [true, 8],
  ]);
  expect(one.cancelled).toBeGreaterThan(0);
  const begun = one.begun;
  one.stopped = false;
  await vi.advanceTimersByTimeAsync(15_000);
  expect(pool.replicas.every(({ serving }) => serving)).toBe(true);
  expect(one.begun).toBeGreaterThan(begun);
  expect(other.cancelled).toBe(0);
  expect(await end()).toBeLessThan(4_100);
});

test("a slow replica that answers probes keeps its calls", async () => {
  const { replicas, pool, end } = await underLoad();
  for (const replica of replicas) replica.takesMs = 10_000;
  await vi.advanceTimersByTimeAsync(30_000);
  expect(pool.replicas.every(({ serving }) => serving)).toBe(true);
  expect(replicas.map(({ cancelled }) => cancelled)).toEqual([0, 0]);
  // At most one probe a second for each replica, however many calls wait.
  for (const { probes } of replicas) expect(probes).toBeLessThan(32);
  await end();
});

test("no call is sent twice with hedgeAfterMs: Infinity, though the replica gets no further ones", async () => {
  const { replicas, pool } = await underLoad({ hedgeAfterMs: Number.POSITIVE_INFINITY });
  const [one] = replicas as [StoppableReplica];
  one.stopped = true;
  await vi.advanceTimersByTimeAsync(5_000);
  expect(pool.replicas[0]!.serving).toBe(false);
  expect(pool.replicas[0]!.outstanding).toBeGreaterThan(0);
  expect(one.cancelled).toBe(0);
  pool.close();
});

test("the only replica is left alone: it may be busy, and no other one could take its calls", async () => {
  const { replicas, pool } = await underLoad({}, ["grpc://a"]);
  replicas[0]!.stopped = true;
  await vi.advanceTimersByTimeAsync(20_000);
  expect(pool.isServing).toBe(true);
  pool.close();
});
