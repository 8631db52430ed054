import { setMaxListeners } from "node:events";
import { errorFor, Tensor, TritonError } from "@tritonjs/protocol";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { SeededRandom } from "../../../../test/support/seeded-random.js";
import { rememberFailure } from "../../../client/src/caller.js";
import { InferResult } from "../../../client/src/infer-result.js";
import { RemoteCalls } from "../../src/remote/remote-executor.js";
import {
  type RemoteCall,
  type RemoteOptions,
  type ReplicaClient,
  remoteSettings,
} from "../../src/remote/replica-client.js";
import { ReplicaPool } from "../../src/remote/replica-pool.js";

describe("a replica that hangs", () => {
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
});

const tensor = Tensor.fromElements("FP32", [1], Float32Array.of(1));

/** Replicas that take a random number of turns for an answer, and that die and come back at random moments. */
class MortalReplica implements ReplicaClient {
  alive = true;
  readonly stream = undefined;
  /** Calls that it has begun, by id. */
  readonly begun = new Map<string, number>();
  #dying: (() => void)[] = [];

  constructor(
    readonly url: string,
    private readonly random: SeededRandom,
  ) {}

  async infer({ id = "", signal }: RemoteCall): Promise<InferResult> {
    if (!this.alive) throw failure("not-sent");
    this.begun.set(id, (this.begun.get(id) ?? 0) + 1);
    let dead = false;
    this.#dying.push(() => {
      dead = true;
    });
    for (let turns = this.random.below(6); turns > 0; turns--) {
      await turn();
      if (signal?.aborted) throw new TritonError("CANCELLED", "cancelled");
      if (dead) throw failure("lost");
    }
    if (this.random.chance(0.05)) throw failure("unavailable");
    if (this.random.chance(0.05)) throw new TritonError("INVALID_ARG", "wrong input");
    return new InferResult({
      id,
      modelName: "m",
      modelVersion: "1",
      parameters: {},
      tensors: new Map([["y", tensor]]),
      sharedMemoryOutputs: new Map(),
      response: undefined,
    });
  }

  async isReady(): Promise<boolean> {
    await turn();
    if (!this.alive) throw failure("not-sent");
    return true;
  }

  async describe(): Promise<never> {
    throw new Error("not described here");
  }

  close(): void {}

  kill(): void {
    this.alive = false;
    for (const die of this.#dying.splice(0)) die();
  }
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

function failure(kind: "not-sent" | "lost" | "unavailable"): TritonError {
  return rememberFailure(new TritonError("UNAVAILABLE", kind, { reason: "CONNECTION_FAILED" }), kind);
}

const SEEDS = Number(process.env.STRESS_SEEDS ?? 20);

const cases = Array.from({ length: SEEDS }, (_, seed) => ({
  seed,
  idempotent: seed % 2 === 1,
  hedges: seed % 4 === 3,
}));

describe("calls of a remote model", () => {
  test.each(cases)(
    "each call settles once while replicas die at random (seed $seed, idempotent $idempotent, hedged $hedges)",
    async ({ seed, idempotent, hedges }) => {
      const random = new SeededRandom(seed);
      const replicas = new Map<string, MortalReplica>();
      const urls = ["grpc://a", "grpc://b", "grpc://c"];
      const settings = remoteSettings({ urls, model: "m", idempotent, ...(hedges && { hedgeAfterMs: 0 }) });
      const pool = new ReplicaPool(settings, (url) => {
        const replica = new MortalReplica(url, random);
        replicas.set(url, replica);
        return replica;
      });
      const calls = new RemoteCalls(pool);
      await pool.firstServing();
      const settled = new Map<string, number>();
      const running: Promise<void>[] = [];
      for (let step = 0; step < 120; step++) {
        const replica = replicas.get(urls[random.below(3)]!)!;
        if (random.chance(0.1)) replica.kill();
        else if (random.chance(0.3)) replica.alive = true;
        const id = String(step);
        const caller = new AbortController();
        const limits = { signal: caller.signal, leftMs: () => Number.POSITIVE_INFINITY };
        const first = random.chance(0.5) ? pool.take(true) : undefined;
        const settle = () => void settled.set(id, (settled.get(id) ?? 0) + 1);
        running.push(
          calls.infer(first, { id, inputs: {} }, limits).then(settle, (error: unknown) => {
            expect(TritonError.is(error)).toBe(true);
            settle();
          }),
        );
        if (random.chance(0.1)) void turn().then(() => caller.abort());
        if (random.chance(0.7)) await turn();
      }
      // Calls without a replica wait for one.
      for (const replica of replicas.values()) replica.alive = true;
      await Promise.all(running);
      expect([...settled.values()]).toEqual(running.map(() => 1));
      // Aborted second requests end a little later.
      await expect.poll(() => pool.replicas.map(({ outstanding }) => outstanding)).toEqual([0, 0, 0]);
      if (!idempotent) {
        // Only a call that a replica rejected has begun elsewhere, and each attempt at another one.
        for (const { begun } of replicas.values()) {
          for (const times of begun.values()) expect(times).toBeLessThanOrEqual(settings.retries + 1);
        }
      }
      pool.close();
    },
  );
});
