import { describe, expect, test } from "vitest";
import { type RemoteOptions, remote } from "../../src/remote/index.js";
import { HeldModel } from "./support/held-model.js";
import { localServer, type ReplicaServer, startReplica } from "./support/replicas.js";
import { TcpProxy } from "./support/tcp-proxy.js";

type Protocol = "grpc" | "http";

/** A server behind a port that can be killed. */
async function mortalReplica(protocol: Protocol) {
  const model = new HeldModel();
  const server: ReplicaServer = await startReplica((triton) => model.bind(triton));
  const proxy = await TcpProxy.start(
    protocol === "grpc" ? server.port : Number(new URL(server.httpUrl).port),
  );
  return { model, server, proxy, url: `${protocol}://127.0.0.1:${proxy.port}` };
}

async function bound(options: Omit<RemoteOptions, "model">) {
  const triton = localServer();
  const inferFunc = await remote({ model: "double", ...options });
  const model = triton.bind({ modelName: "far", inferFunc });
  const infer = async (value: number, timeoutMs?: number) => {
    const { y } = await model.infer({ x: [[value, value]] }, timeoutMs === undefined ? {} : { timeoutMs });
    return (y as unknown as { data: Float32Array }).data[0];
  };
  return { triton, infer };
}

describe.each<Protocol>(["grpc", "http"])("replicas over %s", (protocol) => {
  test("a replica that dies fails its batch alone, and is back when it is ready again", async () => {
    const [one, other] = [await mortalReplica(protocol), await mortalReplica(protocol)];
    const { infer } = await bound({ urls: [one.url, other.url], concurrency: 1 });
    const first = infer(1);
    await Promise.race([one.model.untilBegun(1), other.model.untilBegun(1)]);
    const second = infer(2);
    await Promise.all([one.model.untilBegun(1), other.model.untilBegun(1)]);
    const dead = one.model.begun;
    await one.proxy.kill();
    other.model.release();
    const ends = await Promise.allSettled([first, second]);
    const failed = ends.filter((end) => end.status === "rejected");
    expect(failed).toHaveLength(1);
    expect(failed[0]!.reason).toMatchObject({
      code: "UNAVAILABLE",
      reason: "CONNECTION_FAILED",
      message: expect.stringContaining(`replica ${one.url}: `),
    });
    // All further requests go to the other one.
    expect(await Promise.all([3, 4, 5].map((value) => infer(value)))).toEqual([6, 8, 10]);
    expect(one.model.begun).toBe(dead);
    one.model.release();
    await one.proxy.listen();
    await expect.poll(() => begunAfter(infer(1), one.model)).toBeGreaterThan(dead);
  });

  test("a batch whose requests may run twice runs on another replica", async () => {
    const [one, other] = [await mortalReplica(protocol), await mortalReplica(protocol)];
    other.model.release();
    const { infer } = await bound({ urls: [one.url, other.url], idempotent: true, concurrency: 1 });
    const results: Promise<number | undefined>[] = [];
    while (one.model.begun === 0) {
      results.push(infer(results.length));
      await Promise.race([one.model.untilBegun(1), results.at(-1)]);
    }
    await one.proxy.kill();
    expect(await Promise.all(results)).toEqual(results.map((_, i) => 2 * i));
  });

  test("requests wait while the only replica restarts, and fail when it does not come", async () => {
    const one = await mortalReplica(protocol);
    one.model.release();
    const { infer } = await bound({ urls: one.url });
    expect(await infer(1)).toBe(2);
    await one.proxy.kill();
    await expect(infer(2)).rejects.toMatchObject({ code: "UNAVAILABLE" });
    await expect.poll(() => infer(3).catch(({ reason }) => reason)).toBe("INSTANCES_FAILED");
    await one.proxy.listen();
    await expect.poll(() => infer(4).catch(({ reason }) => reason)).toBe(8);
  });

  test("a slow replica is helped by an idle one, and its request is cancelled", async () => {
    const [slow, fast] = [await mortalReplica(protocol), await mortalReplica(protocol)];
    fast.model.release();
    const { infer } = await bound({ urls: [slow.url, fast.url], hedgeAfterMs: 1 });
    await expect
      .poll(async () => {
        expect(await infer(5)).toBe(10);
        return slow.model.begun;
      })
      .toBeGreaterThan(0);
    // A request of before may still reach the slow replica, and is cancelled there too.
    await expect.poll(() => slow.model.begun - slow.model.cancelled).toBe(0);
  });
});

/** The batches that a model has begun, once a request has ended. */
async function begunAfter(request: Promise<unknown>, model: HeldModel): Promise<number> {
  await request;
  return model.begun;
}

test("replicas found for a name come and go while requests run", async () => {
  const [one, other] = [await mortalReplica("grpc"), await mortalReplica("grpc")];
  const addresses = new Map([["one", true]]);
  const lookup = async (hostname: string) => {
    expect(hostname).toBe("double.models.svc");
    return addresses.has("gone") ? ["127.0.0.2"] : ["127.0.0.1"];
  };
  one.model.release();
  other.model.release();
  const name = `dns://double.models.svc:${one.proxy.port}`;
  const { infer } = await bound({ urls: [name, other.url], lookup, lookupIntervalMs: 5 });
  await expect.poll(() => begunAfter(infer(1), one.model)).toBeGreaterThan(0);
  one.model.held = true;
  const before = one.model.begun;
  const running: Promise<unknown>[] = [];
  await expect
    .poll(async () => {
      running.push(infer(1));
      await Promise.race([running.at(-1), one.model.untilBegun(before + 1)]);
      return one.model.begun;
    })
    .toBeGreaterThan(before);
  addresses.set("gone", true);
  // The running batch ends, and no further one goes to the address that has disappeared.
  await expect.poll(() => infer(2)).toBe(4);
  one.model.release();
  await Promise.all(running);
  addresses.delete("gone");
  const again = one.model.begun;
  await expect.poll(() => begunAfter(infer(1), one.model)).toBeGreaterThan(again);
});

test("a name without addresses is reported with the reason", async () => {
  const lookup = async () => {
    throw new Error("queryA ENOTFOUND nowhere");
  };
  const options = { urls: "dns://nowhere:8001", model: "m", lookup, initTimeoutMs: 20 };
  await expect(remote(options)).rejects.toMatchObject({
    code: "UNAVAILABLE",
    message: expect.stringContaining("cannot find the servers of 'nowhere': queryA ENOTFOUND nowhere"),
  });
});

test("the time that is left travels to the replica", async () => {
  const one = await mortalReplica("grpc");
  const { infer } = await bound({ urls: one.url });
  // On a busy machine, the time may pass before the request reaches the replica.
  for (let timeoutMs = 40; one.model.begun === 0; timeoutMs *= 2) {
    await expect(infer(1, timeoutMs)).rejects.toMatchObject({ code: "UNAVAILABLE" });
  }
  await expect.poll(() => one.model.begun - one.model.cancelled).toBe(0);
});
