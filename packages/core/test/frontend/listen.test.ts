import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { type ListenAt, listenOnAll } from "../../src/frontend/listen.js";

const lookupOf =
  (...addresses: string[]): ListenAt["lookup"] =>
  async () =>
    addresses.map((address) => ({ address }));

const at: ListenAt = {
  address: "localhost",
  port: 0,
  reusePort: false,
  portHint: "the option port",
  lookup: lookupOf("127.0.0.1"),
};

function open(): Server {
  const server = createServer((socket) => socket.end("hello"));
  onTestFinished(() => void server.close());
  return server;
}

async function hearsHello(host: string, port: number): Promise<boolean> {
  const socket = connect(port, host);
  const [bytes] = await once(socket, "data");
  return String(bytes) === "hello";
}

/** A server of another program. */
async function takenPort(host: string): Promise<number> {
  const server = open();
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  return (server.address() as { port: number }).port;
}

// Elsewhere than on Linux only the first address of the loopback network is there.
describe.skipIf(process.platform !== "linux")("listening on all addresses of a host", () => {
  it("opens a server for each, at one port, and tells which is the first", async () => {
    const firsts: (Server | undefined)[] = [];
    const { port, servers } = await listenOnAll<Server>(
      { ...at, lookup: lookupOf("127.0.0.1", "127.0.0.2") },
      (first) => {
        firsts.push(first);
        return open();
      },
    );
    expect(firsts[0]).toBeUndefined();
    expect(new Set(firsts.slice(1))).toEqual(new Set([servers[0]]));
    expect(await hearsHello("127.0.0.1", port)).toBe(true);
    expect(await hearsHello("127.0.0.2", port)).toBe(true);
  });

  it("accepts several connections in a turn of the event loop", async () => {
    let turn = 0;
    const turnOf: number[] = [];
    const { port, servers } = await listenOnAll<Server>(at, () => {
      const server = createServer((socket) => {
        turnOf.push(turn);
        socket.end();
      });
      onTestFinished(() => void server.close());
      return server;
    });
    const count = () => {
      turn++;
      if (turnOf.length < 64) setImmediate(count);
    };
    // All are connected before the first is accepted.
    const clients = Array.from({ length: 64 }, () => connect(port, "127.0.0.1"));
    setImmediate(count);
    await Promise.all(clients.map((client) => once(client.resume(), "close")));
    expect(servers).toHaveLength(8);
    expect(new Set(turnOf).size).toBeLessThanOrEqual(16);
  });

  it("skips addresses that the machine lacks, also in the first place", async () => {
    // An address for documentation, which no machine has.
    const { port, servers } = await listenOnAll({ ...at, lookup: lookupOf("192.0.2.1", "127.0.0.1") }, open);
    expect(new Set(servers.map((server) => (server.address() as AddressInfo).address))).toEqual(
      new Set(["127.0.0.1"]),
    );
    expect(await hearsHello("127.0.0.1", port)).toBe(true);
  });

  it("is refused when the machine has none of them", async () => {
    await expect(listenOnAll({ ...at, lookup: lookupOf("192.0.2.1") }, open)).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: expect.stringMatching(/^cannot listen on localhost:0: .*EADDRNOTAVAIL/),
    });
  });

  it("names the port and its option when the port is taken on any address, and leaves no server open", async () => {
    const port = await takenPort("127.0.0.2");
    const opened: Server[] = [];
    const lookup = lookupOf("127.0.0.1", "127.0.0.2");
    const listening = listenOnAll({ ...at, port, lookup }, () => {
      const server = open();
      opened.push(server);
      return server;
    });
    await expect(listening).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: `port ${port} is already in use: choose another with the option port`,
    });
    expect(opened.filter(({ listening }) => listening)).toEqual([]);
  });

  it("finds another free port when the first one is taken on a later address", async () => {
    let attempts = 0;
    let taken = 0;
    const { port } = await listenOnAll({ ...at, lookup: lookupOf("127.0.0.1", "127.0.0.2") }, (first) => {
      const server = open();
      if (first !== undefined) return server;
      attempts++;
      if (attempts > 1) return server;
      // Another program takes the port of the first address on the second one.
      const listen = server.listen.bind(server) as (options: object, done: () => void) => Server;
      return Object.assign(server, {
        listen: (options: object, done: () => void) =>
          listen(options, () => {
            taken = (server.address() as AddressInfo).port;
            open().listen(taken, "127.0.0.2", done);
          }),
      });
    });
    expect(attempts).toBe(2);
    expect(port).not.toBe(taken);
  });

  it("says why a host has no address", async () => {
    const lookup = () => Promise.reject(new Error("getaddrinfo ENOTFOUND host.invalid"));
    await expect(listenOnAll({ ...at, address: "host.invalid", lookup }, open)).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: "cannot listen on host.invalid:0: getaddrinfo ENOTFOUND host.invalid",
    });
  });

  it.each(["0.0.0.0", "::"])("takes %s for every address where the families are joined", async (address) => {
    const lookup = () => Promise.reject(new Error("not asked"));
    const { port } = await listenOnAll({ ...at, address, joinsFamilies: true, lookup }, open);
    expect(await hearsHello("127.0.0.1", port)).toBe(true);
  });
});
