import { Tensor, TritonError } from "@tritonjs/protocol";
import { expect, test } from "vitest";
import { SeededRandom } from "../../../../test/support/seeded-random.js";
import { rememberFailure } from "../../../client/src/caller.js";
import { InferResult } from "../../../client/src/infer-result.js";
import { RemoteCalls } from "../../src/remote/remote-executor.js";
import type { RemoteCall, ReplicaClient } from "../../src/remote/replica-client.js";
import { remoteSettings } from "../../src/remote/replica-client.js";
import { ReplicaPool } from "../../src/remote/replica-pool.js";

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
