import { batch, type Triton } from "@tritonjs/core";
import { describe, expect, onTestFinished, test } from "vitest";
import { HeldModel } from "../../../backends/test/remote/support/held-model.js";
import { DOUBLE, type ReplicaServer, startReplica } from "../../../backends/test/remote/support/replicas.js";
import { TcpProxy } from "../../../backends/test/remote/support/tcp-proxy.js";
import { InferenceServerClient as GrpcClient, ModelClient as GrpcModelClient } from "../../src/grpc/index.js";
import { InferenceServerClient as HttpClient, ModelClient as HttpModelClient } from "../../src/http/index.js";

type Protocol = "grpc" | "http";
type Options = ConstructorParameters<typeof GrpcClient>[1] & ConstructorParameters<typeof HttpClient>[1];

const clients = { grpc: GrpcClient, http: HttpClient };
const modelClients = { grpc: GrpcModelClient, http: HttpModelClient };

function open(protocol: Protocol, urls: string | readonly string[], options: Options = {}) {
  const client = new clients[protocol](urls, options);
  onTestFinished(() => client.close());
  return client;
}

async function mortalServer(protocol: Protocol, bind: (triton: Triton) => void) {
  const server: ReplicaServer = await startReplica(bind);
  const proxy = await TcpProxy.start(
    protocol === "grpc" ? server.port : Number(new URL(server.httpUrl).port),
  );
  return { server, proxy, url: `127.0.0.1:${proxy.port}` };
}

async function heldServer(protocol: Protocol) {
  const model = new HeldModel();
  return { model, ...(await mortalServer(protocol, (triton) => model.bind(triton))) };
}

const call = (value: number) => ({
  inputs: { x: { datatype: "FP32" as const, shape: [1, 2], data: [value, value] } },
});

describe.each<Protocol>(["grpc", "http"])("a client of several servers over %s", (protocol) => {
  test("sends an inference to the server with the least calls in flight", async () => {
    const [one, other] = [await heldServer(protocol), await heldServer(protocol)];
    const client = open(protocol, [one.url, other.url]);
    const calls = [1, 2, 3, 4].map((value) => client.infer("double", call(value)));
    await Promise.all([one.model.untilBegun(2), other.model.untilBegun(2)]);
    one.model.release();
    await Promise.race(calls);
    await expect.poll(async () => (await client.infer("double", call(9))).elements("y")[0]).toBe(18);
    expect(other.model.begun).toBe(2);
    other.model.release();
    const results = await Promise.all(calls);
    expect(results.map((result) => result.elements("y", "FP32")[0])).toEqual([2, 4, 6, 8]);
  });

  test("leaves a server out that cannot be reached, without a failed call, and takes it back", async () => {
    const [one, other] = [await heldServer(protocol), await heldServer(protocol)];
    one.model.release();
    other.model.release();
    const client = open(protocol, [one.url, other.url], { retries: 0 });
    await one.proxy.kill();
    for (let i = 0; i < 6; i++) expect((await client.infer("double", call(i))).elements("y")[0]).toBe(2 * i);
    expect(one.model.begun).toBe(0);
    expect(await client.isModelReady("double")).toBe(true);
    await one.proxy.listen();
    await expect
      .poll(async () => {
        await client.infer("double", call(1));
        return one.model.begun;
      })
      .toBeGreaterThan(0);
  });

  test("does not repeat an inference whose connection was lost", async () => {
    const [one, other] = [await heldServer(protocol), await heldServer(protocol)];
    const client = open(protocol, [one.url, other.url]);
    const calls = [client.infer("double", call(1)), client.infer("double", call(2))];
    await Promise.all([one.model.untilBegun(1), other.model.untilBegun(1)]);
    await one.proxy.kill();
    other.model.release();
    const ends = await Promise.allSettled(calls);
    expect(ends.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    expect(other.model.begun).toBe(1);
  });

  test("sends all requests of a sequence to one server", async () => {
    const totals = [new Map<string, number>(), new Map<string, number>()];
    const servers = await Promise.all(
      totals.map((sums) =>
        mortalServer(protocol, (triton) => {
          triton.bind({
            modelName: "sum",
            inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
            outputs: [{ name: "total", dtype: "INT32", shape: [1] }],
            inferFunc: batch(({ x }, { requests }) => ({
              total: Int32Array.from(
                requests.map(({ correlationId, sequenceStart }, i) => {
                  const before = sequenceStart ? 0 : sums.get(`${correlationId}`)!;
                  sums.set(`${correlationId}`, before + x.get(i, 0));
                  return sums.get(`${correlationId}`)!;
                }),
              ),
            })),
            config: { sequence: { maxSequenceIdleMicroseconds: 60_000_000 }, instanceGroup: [{ count: 8 }] },
          });
        }),
      ),
    );
    const urls = servers.map(({ url }) => url);
    const client = open(protocol, urls);
    const step = async (on: typeof client, id: number, value: number, place: object = {}) => {
      const inputs = { x: { datatype: "INT32" as const, shape: [1, 1], data: [value] } };
      return (await on.infer("sum", { inputs, sequence: { id, ...place } })).elements("total", "INT32")[0];
    };
    const ids = Array.from({ length: 24 }, (_, i) => i + 1);
    expect(await Promise.all(ids.map((id) => step(client, id, 1, { start: true })))).toEqual(
      ids.map(() => 1),
    );
    expect(await Promise.all(ids.map((id) => step(client, id, 10)))).toEqual(ids.map(() => 11));
    expect(totals.every((sums) => sums.size > 0)).toBe(true);
    // Another client with the same servers finds them too.
    const second = open(protocol, urls);
    expect(await Promise.all(ids.map((id) => step(second, id, 100)))).toEqual(ids.map(() => 111));
    // While its server is gone, a sequence fails, and a new one begins elsewhere.
    await servers[0]!.proxy.kill();
    const there = ids.find((id) => totals[0]!.has(String(id)))!;
    await expect(step(client, there, 1)).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(await step(client, there, 5, { start: true })).toBe(5);
    expect(totals[1]!.get(String(there))).toBe(5);
  });

  test("sends other calls to the first server that it can reach", async () => {
    const [one, other] = [await heldServer(protocol), await heldServer(protocol)];
    one.server.triton.bind({ ...DOUBLE, modelName: "first", inferFunc: batch(({ x }) => ({ y: x })) });
    other.server.triton.bind({ ...DOUBLE, modelName: "second", inferFunc: batch(({ x }) => ({ y: x })) });
    const client = open(protocol, [one.url, other.url]);
    expect(await client.isModelReady("first")).toBe(true);
    expect(await client.isModelReady("second")).toBe(false);
    await one.proxy.kill();
    expect(await client.isModelReady("second")).toBe(true);
  });

  test("follows the addresses of a name", async () => {
    const one = await heldServer(protocol);
    one.model.release();
    let found: readonly string[] = ["127.0.0.1"];
    const lookups: string[] = [];
    const client = open(protocol, `dns://double.svc:${one.proxy.port}`, {
      lookup: async (hostname) => {
        lookups.push(hostname);
        return found;
      },
      lookupIntervalMs: 1,
      retries: 0,
    });
    expect((await client.infer("double", call(1))).elements("y")[0]).toBe(2);
    expect(lookups).toEqual(["double.svc"]);
    found = ["127.0.0.2"];
    await expect
      .poll(() => client.infer("double", call(1)).catch(({ reason }) => reason))
      .toBe("CONNECTION_FAILED");
    found = ["127.0.0.1"];
    await expect.poll(async () => (await client.infer("double", call(2))).elements("y")[0]).toBe(4);
  });

  test("reports a name that has no addresses", async () => {
    const client = open(protocol, "dns://double.svc", { lookup: async () => [], retries: 0 });
    await expect(client.infer("double", call(1))).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: "cannot find the servers of 'double.svc': it has no addresses",
    });
  });

  test("serves the client of a model", async () => {
    const [one, other] = [await heldServer(protocol), await heldServer(protocol)];
    one.model.release();
    other.model.release();
    const model = new modelClients[protocol]([one.url, other.url], "double");
    onTestFinished(() => model.close());
    await one.proxy.kill();
    const { y } = await model.inferSample({ x: [1, 2] });
    expect(Array.from(y!.data as Float32Array)).toEqual([2, 4]);
  });

  test("is refused without an address", () => {
    expect(() => new clients[protocol]([])).toThrow("urls: expected the address of at least one server");
  });
});

test("a stream goes to one server, and the next one to the server with the least streams", async () => {
  const counting = (seen: string[], name: string) => (triton: Triton) =>
    void triton.bind({
      ...DOUBLE,
      inferFunc: batch(({ x }) => {
        seen.push(name);
        return { y: x };
      }),
    });
  const seen: string[] = [];
  const servers = [
    await mortalServer("grpc", counting(seen, "one")),
    await mortalServer("grpc", counting(seen, "other")),
  ];
  const client = open(
    "grpc",
    servers.map(({ url }) => url),
  ) as GrpcClient;
  const opened = [0, 1].map(async () => {
    const responses = client.streamInfer([
      { modelName: "double", ...call(1) },
      { modelName: "double", ...call(2) },
    ]);
    const results: unknown[] = [];
    for await (const { error, result } of responses) results.push(error ?? result.elements("y")[0]);
    return results;
  });
  expect(await Promise.all(opened)).toEqual([
    [1, 2],
    [1, 2],
  ]);
  expect(seen.filter((name) => name === "one").length).toBeGreaterThan(0);
  expect(new Set(seen).size).toBe(2);
});
