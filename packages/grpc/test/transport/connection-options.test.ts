import { createPrivateKey } from "node:crypto";
import { once } from "node:events";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { connect, createServer } from "node:net";
import { type ChannelCredentials, credentials, status } from "@grpc/grpc-js";
import { encodeMessage, inference } from "@tritonjs/protocol/grpc";
import { beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { type Certificates, makeCertificates } from "../../../../test/support/certificates.js";
import { grpc } from "../../src/index.js";
import { PingAbuse } from "../../src/transport/connection.js";
import { FakeService } from "../support/fake-service.js";
import { GrpcClient } from "../support/grpc-client.js";
import { framed, rawCall, rawSession } from "../support/raw-call.js";
import { serve } from "../support/serve.js";

const INFER = "/inference.GRPCInferenceService/ModelInfer";

const message = framed(encodeMessage(inference.ModelInferRequest, { modelName: "m" }));

/** An open call that sends nothing. */
function openCall(session: ClientHttp2Session) {
  const headers = { ":method": "POST", ":path": INFER, "content-type": "application/grpc", te: "trailers" };
  const stream = session.request(headers);
  stream.on("error", () => {});
  stream.write(message);
  return stream;
}

/** A relay to `port` that counts its connections and can be cut without telling either side. */
async function relayTo(port: number): Promise<{ url: string; cut: () => void; connections: () => number }> {
  let cut = (): void => {};
  let connections = 0;
  const relay = createServer((near) => {
    connections++;
    const far = connect(port, "localhost");
    for (const socket of [near, far]) socket.on("error", () => {});
    near.pipe(far).pipe(near);
    far.on("close", () => near.destroy());
    cut = () => {
      near.unpipe(far);
      far.unpipe(near);
      far.resume();
    };
  });
  await new Promise<void>((resolve) => relay.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void relay.close());
  const url = `127.0.0.1:${(relay.address() as { port: number }).port}`;
  return { url, cut: () => cut(), connections: () => connections };
}

/** Timers and the monotonic clock stand still until the test advances them; sockets are not affected. */
function holdTime(): void {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
}

/** The largest part of the age limit that a connection reaches: the limit varies by a tenth. */
const OLDEST = 1.1;

/** Resolves when the server has handled everything that `session` sent before. */
const roundTrip = (session: ClientHttp2Session) =>
  new Promise<void>((resolve, reject) => {
    session.ping((error) => (error === null ? resolve() : reject(error)));
  });

describe("over http2, keepalive", () => {
  const keepalive = { keepaliveTimeMs: 30, keepaliveTimeoutMs: 100 };

  test("closes the connection of a client that no longer answers, and cancels its calls", async () => {
    const service = new FakeService({}, () => {});
    holdTime();
    const { address } = await serve(service, keepalive);
    const { url, cut } = await relayTo(address.port);
    const session = rawSession(url);
    openCall(session).end();
    await expect.poll(() => service.requests.length).toBe(1);
    cut();
    const isClosed = () => {
      vi.advanceTimersByTime(keepalive.keepaliveTimeMs);
      return session.closed;
    };
    await expect.poll(isClosed).toBe(true);
    await expect.poll(() => service.requests[0]!.settled).toBe(true);
  });

  test("keeps the connection of a client that answers", async () => {
    const service = new FakeService({}, () => {});
    holdTime();
    const { address } = await serve(service, keepalive);
    const session = rawSession(address.url);
    openCall(session).end();
    await expect.poll(() => service.requests.length).toBe(1);
    for (let elapsedMs = 0; elapsedMs < 5 * keepalive.keepaliveTimeoutMs; elapsedMs += 30) {
      const pinged = once(session, "ping");
      vi.advanceTimersByTime(keepalive.keepaliveTimeMs);
      await pinged;
      await rawCall(session, message, { ":path": "/inference.GRPCInferenceService/ServerLive" });
    }
    expect(session.destroyed).toBe(false);
  });
});

describe("the age and limits of a connection over http2", () => {
  test("ends calls at the age limit after the grace time, and accepts no new ones", async () => {
    const service = new FakeService({}, () => {});
    holdTime();
    const { address } = await serve(service, { maxConnectionAgeMs: 100, maxConnectionAgeGraceMs: 100 });
    const session = rawSession(address.url);
    const stream = openCall(session);
    await once(session, "connect");
    await roundTrip(session);
    const told = once(session, "goaway");
    vi.advanceTimersByTime(OLDEST * 100);
    const [code, , reason] = await told;
    expect([code, String(reason)]).toEqual([0, "max_age"]);
    expect(stream.closed).toBe(false);
    const closed = once(stream, "close");
    vi.advanceTimersByTime(100);
    await closed;
  });

  test("does not delay a stop for an aged connection", async () => {
    const service = new FakeService({}, () => {});
    holdTime();
    const { address, frontend } = await serve(service, { maxConnectionAgeMs: 50 });
    const session = rawSession(address.url);
    openCall(session).end();
    await expect.poll(() => service.requests.length).toBe(1);
    const told = once(session, "goaway");
    vi.advanceTimersByTime(OLDEST * 50);
    await told;
    vi.useRealTimers();
    await frontend.stop(0);
    await expect.poll(() => service.requests[0]!.settled).toBe(true);
  });

  test("lets clients replace an aged connection without an error", async () => {
    holdTime();
    const { address } = await serve(new FakeService(), { maxConnectionAgeMs: 50 });
    const relay = await relayTo(address.port);
    const client = new GrpcClient(relay.url);
    onTestFinished(() => client.close());
    while (relay.connections() < 4) {
      await client.infer({ modelName: "m" });
      // The next call may meet the end of its connection.
      vi.advanceTimersByTime(OLDEST * 50);
    }
  });

  test("limits concurrent calls", async () => {
    const { client, address } = await serve(new FakeService(), { maxConcurrentStreams: 3 });
    const session = rawSession(address.url);
    const [settings] = await once(session, "remoteSettings");
    expect(settings.maxConcurrentStreams).toBe(3);
    const many = Array.from({ length: 20 }, () => client.infer({ modelName: "m" }));
    await expect(Promise.all(many)).resolves.toHaveLength(20);
  });
});

describe("an HTTP/2 connection", () => {
  test("is closed when its client pings without end", async () => {
    const { address } = await serve(new FakeService());
    const session = connectHttp2(`http://${address.url}`, { maxOutstandingPings: 10 });
    session.on("error", () => {});
    await once(session, "connect");
    const [code, , reason] = await new Promise<unknown[]>((resolve) => {
      session.once("goaway", (...args) => resolve(args));
      for (let ping = 0; ping < 4; ping++) session.ping(() => {});
    });
    expect([code, String(reason)]).toEqual([11, "too_many_pings"]);
    session.destroy();
    const next = new GrpcClient(address.url);
    await expect(next.infer({ modelName: "m" })).resolves.toBeDefined();
    next.close();
  });

  test("gets keepalive pings without calls only when they are permitted", async () => {
    const options = { keepaliveTimeMs: 20, keepaliveTimeoutMs: 100, http2MaxPingStrikes: 0 };
    holdTime();
    const pingsOf = async (keepalivePermitWithoutCalls: boolean) => {
      const { address } = await serve(new FakeService(), { ...options, keepalivePermitWithoutCalls });
      const session = rawSession(address.url);
      let pings = 0;
      session.on("ping", () => pings++);
      await once(session, "connect");
      await roundTrip(session);
      for (let round = 0; round < 8; round++) {
        vi.advanceTimersByTime(options.keepaliveTimeMs);
        await roundTrip(session);
      }
      return pings;
    };
    expect(await pingsOf(false)).toBe(0);
    // tritonserver's `--grpc-http2-max-pings-without-data`
    expect(await pingsOf(true)).toBe(2);
  });

  test("rejects calls whose headers exceed the limit", async () => {
    const { client, address } = await serve(new FakeService(), { maxMetadataSize: 2000 });
    const session = rawSession(address.url);
    // The limit applies once the client has acknowledged it.
    await rawCall(session, message);
    const { reset } = await rawCall(session, message, { "x-large": "x".repeat(3000) });
    expect(reset).toBe(11);
    await client.infer({ modelName: "m" });
    await expect(
      client.infer({ modelName: "m" }, { headers: [["x-large", "x".repeat(3000)]] }),
    ).rejects.toMatchObject({ code: status.RESOURCE_EXHAUSTED });
    await expect(
      client.infer({ modelName: "m" }, { headers: [["x-small", "x".repeat(300)]] }),
    ).resolves.toBeDefined();
  });
});

describe("a client ping", () => {
  const rules = {
    http2MinRecvPingIntervalWithoutDataMs: 1000,
    http2MaxPingStrikes: 2,
    keepalivePermitWithoutCalls: false,
  };

  test("is one too many after two early pings", () => {
    const abuse = new PingAbuse(rules);
    expect([0, 1, 2, 3].map((now) => abuse.isOneTooMany(now, 1))).toEqual([false, false, false, true]);
  });

  test("is never too many at the allowed interval", () => {
    const abuse = new PingAbuse(rules);
    for (let now = 0; now < 10_000; now += 1000) expect(abuse.isOneTooMany(now, 1)).toBe(false);
  });

  test("needs an interval of two hours without calls", () => {
    const abuse = new PingAbuse(rules);
    const times = [0, 7_200_000, 7_201_000, 7_202_000, 7_203_000];
    expect(times.map((now) => abuse.isOneTooMany(now, 0))).toEqual([false, false, false, false, true]);
    const permitted = new PingAbuse({ ...rules, keepalivePermitWithoutCalls: true });
    for (const now of times) expect(permitted.isOneTooMany(now, 0)).toBe(false);
  });

  test("is forgiven when data is sent", () => {
    const abuse = new PingAbuse(rules);
    for (let now = 0; now < 10; now++) {
      expect(abuse.isOneTooMany(now, 1)).toBe(false);
      abuse.pardon();
    }
  });

  test("may come at any rate when strikes are off", () => {
    const abuse = new PingAbuse({ ...rules, http2MaxPingStrikes: 0 });
    for (let now = 0; now < 100; now++) expect(abuse.isOneTooMany(now, 1)).toBe(false);
  });
});

let certificates: Certificates;

beforeAll(async () => {
  certificates = await makeCertificates();
});

function clientOf(url: string, security: ChannelCredentials): GrpcClient {
  const client = new GrpcClient(url, security);
  onTestFinished(() => client.close());
  return client;
}

const ask = (client: GrpcClient) => client.infer({ modelName: "m", id: "asked" });

const answered = { id: "asked" };

const refused = { code: status.UNAVAILABLE };

const pem = (text: string) => Buffer.from(text);

describe("TLS over http2", () => {
  test("serves only clients that trust the root", async () => {
    const { ca, server } = certificates;
    const { address, client: plain } = await serve(new FakeService(), { tls: server });
    await expect(ask(clientOf(address.url, credentials.createSsl(pem(ca))))).resolves.toMatchObject(answered);
    await expect(ask(clientOf(address.url, credentials.createSsl()))).rejects.toMatchObject(refused);
    await expect(ask(plain)).rejects.toMatchObject(refused);
  });

  test("requires a client certificate when client roots are given", async () => {
    const { ca, server, client, stranger } = certificates;
    const { address } = await serve(new FakeService(), { tls: { ...server, ca } });
    const withCertificate = ({ cert, key }: { cert: string; key: string }) =>
      clientOf(address.url, credentials.createSsl(pem(ca), pem(key), pem(cert)));
    await expect(ask(withCertificate(client))).resolves.toMatchObject(answered);
    await expect(ask(withCertificate(stranger))).rejects.toMatchObject(refused);
    await expect(ask(clientOf(address.url, credentials.createSsl(pem(ca))))).rejects.toMatchObject(refused);
  });

  test("opens an encrypted key with its passphrase", async () => {
    const { ca, server } = certificates;
    const passphrase = "open sesame";
    const key = createPrivateKey(server.key).export({
      type: "pkcs8",
      format: "pem",
      cipher: "aes-256-cbc",
      passphrase,
    });
    const { address } = await serve(new FakeService(), { tls: { cert: server.cert, key, passphrase } });
    await expect(ask(clientOf(address.url, credentials.createSsl(pem(ca))))).resolves.toMatchObject(answered);
  });

  test("requests a client certificate but does not require it with `rejectUnauthorized: false`", async () => {
    const { ca, server } = certificates;
    const { address } = await serve(new FakeService(), { tls: { ...server, ca, rejectUnauthorized: false } });
    await expect(ask(clientOf(address.url, credentials.createSsl(pem(ca))))).resolves.toMatchObject(answered);
  });

  test("does not delay a stop while a client is silent during its handshake", async () => {
    const { frontend, address } = await serve(new FakeService(), { tls: certificates.server });
    const socket = connect(address.port, "localhost");
    await new Promise((resolve) => socket.once("connect", resolve));
    const closed = new Promise((resolve) => socket.on("error", () => {}).once("close", resolve));
    await frontend.stop(60_000);
    await closed;
  });

  test("rejects a key that does not match the certificate", async () => {
    const { server, stranger } = certificates;
    const wrong = grpc({ port: 0, tls: { cert: server.cert, key: stranger.key } });
    await expect(wrong.start({ service: new FakeService() })).rejects.toMatchObject({ code: "INVALID_ARG" });
  });
});
