import { InferenceServerClient } from "@tritonjs/client/grpc";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freePorts } from "../support/free-ports.js";
import { FrontProxy, type Product, programOf } from "./front-proxy.js";
import { ProxiedLoad } from "./proxied-load.js";
import { Replica } from "./replica.js";

/** Longer than HAProxy needs to notice that a replica is not ready, and than a sequence of the load. */
const EXIT_DELAY_SECS = 6;

/** Enough for the exit delays and the starts of three servers beside a load, on a busy machine. */
const RESTARTS_MS = 240_000;

const note = (product: Product) => (programOf(product) === undefined ? ` (skipped: no ${product} here)` : "");

/** Waits until the load has had many further answers. */
async function moreAnswers(load: ProxiedLoad, count = 100): Promise<void> {
  const before = load.total;
  await expect.poll(() => load.total).toBeGreaterThan(before + count);
}

describe.each<Product>(["haproxy", "nginx"])("three replicas behind %s", (product) => {
  const missing = programOf(product) === undefined;
  let replicas: Replica[] = [];
  let proxy: FrontProxy;

  beforeAll(async () => {
    if (missing) return;
    const ports = await freePorts(6);
    replicas = await Promise.all(
      [0, 1, 2].map((i) =>
        Replica.start(
          { http: ports[2 * i]!, grpc: ports[2 * i + 1]! },
          `--exit-delay-secs=${EXIT_DELAY_SECS}`,
        ),
      ),
    );
    proxy = await FrontProxy.start(
      product,
      replicas.map(({ ports }) => ports),
    );
  });

  afterAll(async () => {
    await proxy?.[Symbol.asyncDispose]();
    for (const replica of replicas) await replica[Symbol.asyncDispose]();
  });

  /** Waits until the proxy uses all replicas. nginx tries a replica again by itself. */
  async function allUp(): Promise<void> {
    if (product === "haproxy") await expect.poll(() => proxy.upCount()).toBe(3);
    for (const { client } of replicas) expect(await client.isServerReady()).toBe(true);
  }

  it.skipIf(missing)(
    `share the load, and keep sequences together over both protocols${note(product)}`,
    async () => {
      const load = new ProxiedLoad(proxy);
      await moreAnswers(load, 200);
      await load[Symbol.asyncDispose]();
      expect([load.lostRequests, load.lostSequences]).toEqual([[], []]);
      expect(load.sequences).toBeGreaterThan(0);
      const counts = await Promise.all(replicas.map(({ client }) => client.getInferenceStatistics("double")));
      for (const { model_stats } of counts) expect(model_stats[0]!.inference_count).toBeGreaterThan(0);
    },
  );

  it.skipIf(missing)(
    `put a new version into service one by one while both versions answer${note(product)}`,
    async () => {
      const load = new ProxiedLoad(proxy);
      await moreAnswers(load);
      for (const [i, replica] of replicas.entries()) {
        await replica.loadSecondVersion();
        const { 1: first = 0, 2: second = 0 } = load.answered;
        await expect.poll(() => load.answered[2] ?? 0).toBeGreaterThan(second);
        if (i < replicas.length - 1) await expect.poll(() => load.answered[1]).toBeGreaterThan(first);
      }
      await load[Symbol.asyncDispose]();
      expect([load.lostRequests, load.lostSequences]).toEqual([[], []]);
    },
  );

  it.skipIf(missing)(
    `lose nothing when all of them restart in turn${note(product)}`,
    async () => {
      // nginx notices a replica that stops only by its refusals, and can send no gRPC request twice.
      const retries = { retryUnavailable: true, retryLostInferences: true };
      const load = new ProxiedLoad(proxy, product === "haproxy" ? {} : retries);
      await moreAnswers(load);
      for (const replica of replicas) {
        expect(await replica.restart()).toMatchObject({ code: 0 });
        await allUp();
        await moreAnswers(load);
      }
      await load[Symbol.asyncDispose]();
      expect(load.lostRequests).toEqual([]);
      // nginx sends new sequences, too, to a replica until that refuses.
      if (product === "haproxy") expect(load.lostSequences).toEqual([]);
      else expect(load.lostSequences.join()).not.toContain("wrong sum");
    },
    RESTARTS_MS,
  );

  it.skipIf(missing)(
    `lose no more than what a killed one was running${note(product)}`,
    async () => {
      const careless = new ProxiedLoad(proxy);
      const careful = new ProxiedLoad(proxy, { retryLostInferences: true });
      await moreAnswers(careless);
      await replicas[0]!.kill();
      await moreAnswers(careless);
      await replicas[0]!.startAgain();
      await allUp();
      await moreAnswers(careful);
      for (const load of [careless, careful]) await load[Symbol.asyncDispose]();
      expect(careful.lostRequests).toEqual([]);
      // Each loop has one request in flight.
      expect(careless.lostRequests.length).toBeLessThanOrEqual(6);
      for (const load of [careless, careful]) {
        for (const text of load.lostSequences) expect(text).not.toContain("wrong sum");
      }
    },
    RESTARTS_MS,
  );

  it.skipIf(missing)(`pass streams of responses on${note(product)}`, async () => {
    const client = new InferenceServerClient(proxy.grpc, { sequenceHeader: "x-sequence-id" });
    const inputs = (x: number) => ({ x: { datatype: "FP32", shape: [1, 1], data: [x] } }) as const;
    const requests = [1, 2, 3].map((x) => ({
      modelName: "sum",
      inputs: inputs(x),
      sequence: { id: "stream", start: x === 1, end: x === 3 },
    }));
    const sums: number[] = [];
    for await (const { result } of client.streamInfer(requests, { sequence: { id: "stream" } })) {
      sums.push(result!.elements("y", "FP32")[0]!);
    }
    client.close();
    expect(sums).toEqual([1, 3, 6]);
  });
});
