import { once } from "node:events";
import {
  credentials,
  Metadata,
  makeGenericClientConstructor,
  Server,
  ServerCredentials,
  type ServiceDefinition,
  status,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { batch, Triton } from "@tritonjs/core";
import { decodeMessage, encodeMessage, grpc as messages } from "@tritonjs/protocol/grpc";
import { RequestMemory, serviceOf } from "@tritonjs/server";
import { describe, expect, onTestFinished, test } from "vitest";
import { makeCertificates } from "../../../test/support/certificates.js";
import { addV2Service, type V2ServiceOptions } from "../src/index.js";
import { FakeService } from "./support/fake-service.js";
import { GrpcClient } from "./support/grpc-client.js";
import { listening } from "./support/listening-server.js";
import { framed, rawCall, rawSession } from "./support/raw-call.js";
import { answer, manualService, ok, reader } from "./support/stream-reader.js";

const { HealthCheckRequest, HealthCheckResponse } = messages.health.v1;
const { SERVING, NOT_SERVING } = HealthCheckResponse.ServingStatus;

const SHUTTING_DOWN = "GRPC server is shutting down and has stopped accepting new requests.";

/** A service of the program's own, whose messages are text. */
const text = {
  requestStream: false,
  responseStream: false,
  requestSerialize: (value: string) => Buffer.from(value),
  requestDeserialize: (bytes: Buffer) => bytes.toString(),
  responseSerialize: (value: string) => Buffer.from(value),
  responseDeserialize: (bytes: Buffer) => bytes.toString(),
};
const greeter: ServiceDefinition = { greet: { ...text, path: "/app.Greeter/Greet" } };
const Greeter = makeGenericClientConstructor(greeter, "Greeter");
const greetings: UntypedServiceImplementation = {
  greet: (call: { request: string }, respond: (error: null, value: string) => void) =>
    respond(null, `hello ${call.request}`),
};

/** Calls the program's own service. */
function greet(url: string, name: string): Promise<string> {
  const client = new Greeter(url, credentials.createInsecure());
  onTestFinished(() => client.close());
  return new Promise((resolve, reject) => {
    client.greet!(name, (error: Error | null, value: string) =>
      error === null ? resolve(value) : reject(error),
    );
  });
}

function clientOf(url: string, security = credentials.createInsecure()): GrpcClient {
  const client = new GrpcClient(url, security);
  onTestFinished(() => client.close());
  return client;
}

/** A program's server with a service of its own and the v2 service. */
async function openServer(target: Parameters<typeof addV2Service>[1], options?: V2ServiceOptions) {
  const server = new Server();
  server.addService(greeter, greetings);
  addV2Service(server, target, options);
  const { url } = await listening(server);
  return { server, url, client: clientOf(url) };
}

/** A Triton whose model answers when the test says so. */
function heldTriton() {
  const triton = new Triton();
  onTestFinished(() => triton.close());
  let release = (): void => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  let begin = (): void => {};
  const begun = new Promise<void>((resolve) => (begin = resolve));
  const model = triton.bind({
    modelName: "held",
    inputs: [{ name: "x", dtype: "UINT8", shape: [1] }],
    outputs: [{ name: "y", dtype: "UINT8", shape: [1] }],
    inferFunc: batch(async ({ x }) => {
      begin();
      await released;
      return { y: x };
    }),
  });
  return { triton, ready: model.ready(), release, begun };
}

const held = {
  modelName: "held",
  inputs: [{ name: "x", datatype: "UINT8", shape: [1, 1] }],
  rawInputContents: [Uint8Array.of(7)],
};

function watchHealth(client: GrpcClient) {
  const watch = client.makeServerStreamRequest(
    "/grpc.health.v1.Health/Watch",
    (message: object) => encodeMessage(HealthCheckRequest, message),
    (bytes) => decodeMessage(HealthCheckResponse, bytes),
    {},
    new Metadata(),
  );
  const ended = new Promise<{ code: number; details: string }>((resolve) =>
    watch.once("error", resolve as never),
  );
  const next = async (): Promise<number> => (await once(watch, "data"))[0].status;
  return { watch, ended, next };
}

const checkHealth = (client: GrpcClient) =>
  client.call("/grpc.health.v1.Health/Check", HealthCheckRequest, HealthCheckResponse, {});

describe("the v2 service in a server of the program's own", () => {
  test("answers beside the services of the program", async () => {
    const { url, client } = await openServer({ service: new FakeService() });
    expect(await greet(url, "ann")).toBe("hello ann");
    await expect(client.infer({ modelName: "m", id: "a" })).resolves.toMatchObject({ id: "a" });
    expect((await checkHealth(client)).status).toBe(SERVING);
  });

  test("can be added to a server that already listens", async () => {
    const server = new Server();
    const { url } = await listening(server);
    addV2Service(server, { service: new FakeService() });
    await expect(clientOf(url).infer({ modelName: "m", id: "late" })).resolves.toMatchObject({ id: "late" });
  });

  test("speaks TLS with the credentials of the server", async () => {
    const { ca, server: own } = await makeCertificates();
    const pair = { cert_chain: Buffer.from(own.cert), private_key: Buffer.from(own.key) };
    const server = new Server();
    addV2Service(server, { service: new FakeService() });
    const { url } = await listening(server, ServerCredentials.createSsl(null, [pair]));
    const trusting = clientOf(url, credentials.createSsl(Buffer.from(ca)));
    await expect(trusting.infer({ modelName: "m", id: "tls" })).resolves.toMatchObject({ id: "tls" });
    await expect(clientOf(url).infer({ modelName: "m" })).rejects.toMatchObject({ code: status.UNAVAILABLE });
  });

  test("asks for the access token of the Triton", async () => {
    const triton = new Triton();
    onTestFinished(() => triton.close());
    const { client } = await openServer(triton);
    const index = (headers: readonly (readonly [string, string])[]) =>
      client.ask("RepositoryIndex", {}, { headers });
    await expect(index([])).rejects.toMatchObject({
      code: status.UNAVAILABLE,
      details: "This protocol is restricted, expecting header 'triton-grpc-protocol-triton-access-token'",
    });
    const token = ["triton-grpc-protocol-triton-access-token", serviceOf(triton).accessToken!] as const;
    await expect(index([token])).resolves.toBeDefined();
  });

  test("keeps the limit of the server on messages", async () => {
    const server = new Server({ "grpc.max_receive_message_length": 1000 });
    addV2Service(server, { service: new FakeService() });
    const { url } = await listening(server);
    const infer = clientOf(url).infer({ modelName: "m", rawInputContents: [new Uint8Array(2000)] });
    await expect(infer).rejects.toMatchObject({ code: status.RESOURCE_EXHAUSTED });
  });

  test("counts requests in the memory of the Triton until they are answered, and refuses more than fit", async () => {
    const { service, arrived } = manualService();
    service.requestMemory = new RequestMemory({ byteSize: 10_000 });
    const { client } = await openServer({ service });
    const message = {
      modelName: "m",
      inputs: [{ name: "X", datatype: "UINT8", shape: [6000] }],
      rawInputContents: [new Uint8Array(6000)],
    };
    const kept = client.infer({ ...message, id: "kept" });
    const [first] = await arrived(1);
    const used = service.requestMemory.usedBytes;
    expect(used).toBeGreaterThan(6000);
    const refused = client.infer(message);
    await expect(refused).rejects.toMatchObject({ code: status.UNAVAILABLE });
    await expect(refused).rejects.toSatisfy((error: { metadata: Metadata }) =>
      Boolean(error.metadata.get("grpc-retry-pushback-ms")[0]),
    );
    const stream = client.stream();
    const { ended } = reader(stream);
    stream.write(message);
    expect(await ended).toMatchObject({ code: status.UNAVAILABLE });
    expect(service.requestMemory.usedBytes).toBe(used);
    answer(first!);
    await expect(kept).resolves.toMatchObject({ id: "kept" });
    await expect.poll(() => service.requestMemory.usedBytes).toBe(0);
  });

  test("frees the memory of requests that are broken or abandoned", async () => {
    const { service, arrived } = manualService();
    const { url, client } = await openServer({ service });
    const broken = await rawCall(rawSession(url), framed(Buffer.from("not a message")));
    expect([broken.grpcStatus, broken.message]).toEqual([status.INTERNAL, "Error%20deserializing%20request"]);
    const stream = client.stream();
    const { ended } = reader(stream);
    stream.write({ modelName: "m" });
    await arrived(1);
    stream.cancel();
    expect(await ended).toMatchObject({ code: status.CANCELLED });
    await expect.poll(() => service.requestMemory.usedBytes).toBe(0);
  });
});

describe("a service that the server already has", () => {
  const health: ServiceDefinition = { watch: { ...text, path: "/grpc.health.v1.Health/Watch" } };

  test("is not replaced, and none of ours is added", async () => {
    const server = new Server();
    server.addService(health, { watch: greetings.greet! });
    expect(() => addV2Service(server, { service: new FakeService() })).toThrow(
      expect.objectContaining({
        code: "ALREADY_EXISTS",
        message:
          "cannot add the service grpc.health.v1.Health: the server already has it; " +
          "call addV2Service with { health: false } to keep the one of the server",
      }),
    );
    const { url } = await listening(server);
    await expect(clientOf(url).infer({ modelName: "m" })).rejects.toMatchObject({
      code: status.UNIMPLEMENTED,
    });
    await expect(checkHealth(clientOf(url))).rejects.toMatchObject({ code: status.UNIMPLEMENTED });
  });

  test("stays beside the v2 service with `health: false`", async () => {
    const server = new Server();
    server.addService(health, { watch: greetings.greet! });
    addV2Service(server, { service: new FakeService() }, { health: false });
    const { url } = await listening(server);
    await expect(clientOf(url).infer({ modelName: "m" })).resolves.toBeDefined();
    await expect(checkHealth(clientOf(url))).rejects.toMatchObject({ code: status.UNIMPLEMENTED });
  });

  test("is named when the v2 service is added twice", () => {
    const server = new Server();
    addV2Service(server, { service: new FakeService() });
    expect(() => addV2Service(server, { service: new FakeService() })).toThrow(
      "cannot add the service inference.GRPCInferenceService: the server already has it",
    );
  });
});

describe("while the Triton closes", () => {
  test("requests in flight finish, new ones are refused, and other services go on", async () => {
    const { triton, ready, release, begun } = heldTriton();
    const { url, client } = await openServer(triton);
    await ready;
    const kept = client.infer({ ...held, id: "kept" });
    await begun;
    const closed = triton.close();
    await expect(client.infer(held)).rejects.toMatchObject({
      code: status.UNAVAILABLE,
      details: SHUTTING_DOWN,
    });
    expect((await checkHealth(client)).status).toBe(NOT_SERVING);
    release();
    await expect(kept).resolves.toMatchObject({ id: "kept" });
    await closed;
    await expect(client.infer(held)).rejects.toMatchObject({ code: status.UNAVAILABLE });
    expect((await checkHealth(client)).status).toBe(NOT_SERVING);
    expect(await greet(url, "bob")).toBe("hello bob");
  });

  test("a stream delivers what is in flight, refuses what comes, and ends when the last request is over", async () => {
    const { triton, ready, release, begun } = heldTriton();
    const { server, client } = await openServer(triton);
    await ready;
    const stream = client.stream();
    const { next, ended } = reader(stream);
    stream.write({ ...held, id: "kept" });
    await begun;
    const closed = triton.close();
    stream.write({ ...held, id: "late" });
    // The connection keeps the order: once this call is refused, the server has the message as well.
    await expect(client.infer(held)).rejects.toMatchObject({ code: status.UNAVAILABLE });
    release();
    const answers = [await next(), await next()];
    expect(answers.map(({ inferResponse }) => inferResponse!.id)).toEqual(["kept", "late"]);
    expect(answers.map(({ errorMessage }) => errorMessage)).toEqual(["", SHUTTING_DOWN]);
    expect(await ended).toEqual({ code: status.UNAVAILABLE, details: SHUTTING_DOWN });
    await closed;
    // Nothing of ours holds the server up.
    await new Promise<void>((resolve, reject) => {
      server.tryShutdown((error) => (error === undefined ? resolve() : reject(error)));
    });
  });

  test("watchers of health hear NOT_SERVING, and their streams end", async () => {
    const { triton, ready } = heldTriton();
    const { client } = await openServer(triton);
    await ready;
    const { ended, next } = watchHealth(client);
    expect(await next()).toBe(SERVING);
    const told = next();
    await triton.close();
    expect(await told).toBe(NOT_SERVING);
    expect(await ended).toMatchObject({ code: status.UNAVAILABLE, details: SHUTTING_DOWN });
    expect(await watchHealth(client).ended).toMatchObject({ code: status.UNAVAILABLE });
  });

  test("a Triton that is closed already refuses from the start", async () => {
    const { triton, ready } = heldTriton();
    await ready;
    await triton.close();
    const { client } = await openServer(triton);
    await expect(client.infer(held)).rejects.toMatchObject({
      code: status.UNAVAILABLE,
      details: SHUTTING_DOWN,
    });
  });
});

describe("when the program ends its server", () => {
  test("`tryShutdown` lets requests in flight finish", async () => {
    const { service, arrived } = manualService();
    const { server, client } = await openServer({ service });
    const kept = client.infer({ modelName: "m", id: "kept" });
    const [request] = await arrived(1);
    const down = new Promise<void>((resolve) => server.tryShutdown(() => resolve()));
    answer(request!);
    await expect(kept).resolves.toMatchObject({ id: "kept" });
    await down;
  });

  test("`forceShutdown` cancels requests in flight, of calls and of streams", async () => {
    const { service, arrived } = manualService();
    const { server, client } = await openServer({ service });
    const cut = expect(client.infer({ modelName: "m" })).rejects.toBeDefined();
    const stream = client.stream();
    const { ended } = reader(stream);
    stream.write({ modelName: "m" });
    const requests = await arrived(2);
    server.forceShutdown();
    await cut;
    expect((await ended).code).not.toBe(ok.code);
    await expect.poll(() => requests.every(({ settled }) => settled)).toBe(true);
    expect(service.requestMemory.usedBytes).toBe(0);
  });
});
