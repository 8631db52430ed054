import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { ENDPOINT_GROUPS } from "@tritonjs/core/internal/server";
import { describe, expect, it, onTestFinished } from "vitest";
import { AccessGate } from "../../src/access/access-control.js";
import { resolveSecurity } from "../../src/access/security.js";
import { headerPattern } from "../../src/frontend/header-pattern.js";
import { type ListenAt, listenOnAll } from "../../src/frontend/listen.js";

describe("a header pattern", () => {
  it.each<[pattern: string, names: readonly string[], others: readonly string[]]>([
    ["my-.*|timeout", ["MY-b", "x-my-a", "Timeout"], ["my", "other"]],
    ["(?-i)my-.*", ["x-my-a"], ["MY-b", "My-b"]],
    ["(?i)my-.*", ["MY-b"], ["m-b"]],
    ["^(?-i:X)-a", ["X-A", "X-a"], ["x-a", "y-X-a"]],
    ["(?-i)a(?i)b|c", ["aB", "ab", "C"], ["AB"]],
    ["(?-i)(a(?i)b)c", ["aBc"], ["aBC"]],
    ["(?i-s)a", ["A"], ["b"]],
    ["(?ims-U)^a.$", ["ab"], ["abc"]],
    ["(?-i)[a-c]+", ["xax"], ["A"]],
    ["^[^a-c]$", ["d"], ["a", "B"]],
    ["(?-i)^[^a-c]$", ["A"], ["a"]],
    ["^[]-]$", ["-", "]"], ["a"]],
    ["^[a\\-\\]]$", ["-", "]"], ["\\"]],
    ["^[[:digit:][:^alnum:]]+$", ["1-"], ["a"]],
    ["^[\\d\\pP]+$", ["1-_"], ["a"]],
    ["^\\p{Lu}\\PL$", ["A-", "a-"], ["--"]],
    ["(?-i)^\\p{Latin}\\p{^L}$", ["A-"], ["-A"]],
    ["^x{2,3}$", ["xx", "xXx"], ["x", "xxxx"]],
    ["^x{,2}$", ["x{,2}"], ["x"]],
    ["^x{01}$", ["x{01}"], ["x"]],
    ["^a*?b+?c??$", ["aabb", "bc"], ["a"]],
    ["^*a", ["a", "ba"], ["b"]],
    ["\\Aa\\z", ["a"], ["ab"]],
    ["\\Qa.b\\E+", ["a.bb"], ["axb"]],
    ["^\\x61\\x{62}\\143\\056$", ["abc."], ["abcd"]],
    ["\\bid\\b", ["x-id-y"], ["xid"]],
    ["(?P<one>a)(?<two>b)", ["ab"], ["a"]],
    ["^(?:a|)b$", ["ab", "b"], ["a"]],
    ["é?x", ["x"], ["e"]],
  ])("%s", (pattern, names, others) => {
    const expression = headerPattern(pattern)!;
    expect(names.filter((name) => !expression.test(name))).toEqual([]);
    expect(others.filter((name) => expression.test(name))).toEqual([]);
  });

  it.each([
    ["[", "missing ]: ["],
    ["[a-", "missing ]: [a-"],
    ["(a", "missing ): (?i)(a"],
    ["a)", "unexpected ): (?i)a)"],
    ["*a", "no argument for repetition operator: *"],
    ["(?i)*", "no argument for repetition operator: *"],
    ["a**", "bad repetition operator: **"],
    ["a{2}{3}", "bad repetition operator: {2}{3}"],
    ["a{1001}", "invalid repetition size: {1001}"],
    ["a{3,2}", "invalid repetition size: {3,2}"],
    ["[c-a]", "invalid character class range: c-a"],
    ["[[:letter:]]", "invalid character class range: [:letter:]"],
    ["\\p{Nonsense}", "invalid character class range: \\p{Nonsense}"],
    ["(a)\\1", "invalid escape sequence: \\1"],
    ["\\Z", "invalid escape sequence: \\Z"],
    ["a\\", "trailing \\"],
    ["(?=a)", "invalid perl operator: (?="],
    ["(?<!a)b", "invalid perl operator: (?<"],
    ["(?i-)a", "invalid perl operator: (?i"],
    ["(?P<a-b>c)", "invalid named capture group: (?P<a-b>"],
  ])("rejects %s as RE2 does", (pattern, reason) => {
    expect(() => headerPattern(pattern)).toThrow(`Error parsing '(?i)${pattern}': ${reason}`);
  });

  it("accepts a JavaScript expression and ignores its state", () => {
    const expression = headerPattern(/(?<=x-)A/gy)!;
    expect([expression.test("x-a"), expression.test("x-a"), expression.test("a")]).toEqual([
      true,
      true,
      false,
    ]);
  });

  it.each([undefined, ""])("forwards nothing for %j", (pattern) => {
    expect(headerPattern(pattern)).toBeUndefined();
  });
});

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

const restricted = ["shared-memory", "model-repository", "statistics", "trace", "logging"];

describe("the security options of a server", () => {
  it("protect endpoints that change the server or describe more than models, with a random token", () => {
    const { accessToken, restrictions } = resolveSecurity();
    expect(accessToken).toMatch(/^[\w-]{43}$/);
    expect(resolveSecurity().accessToken).not.toBe(accessToken);
    expect(Object.keys(restrictions).sort()).toEqual([...restricted].sort());
    for (const restriction of Object.values(restrictions)) {
      expect(restriction).toEqual({ header: "triton-access-token", value: accessToken, isGenerated: true });
    }
  });

  it("use the given token and restrictions", () => {
    const value = "secret";
    const { accessToken, restrictions } = resolveSecurity({
      accessToken: value,
      restrictedEndpoints: ["health"],
    });
    expect(accessToken).toBe(value);
    expect(restrictions).toEqual({ health: { header: "triton-access-token", value, isGenerated: false } });
    expect(resolveSecurity({ restrictedEndpoints: [] })).toEqual({
      accessToken: undefined,
      restrictions: {},
      allowedHosts: [],
    });
  });

  it("reject unknown groups and an empty token", () => {
    expect(() => resolveSecurity({ restrictedEndpoints: ["stats", "health", "all"] as never })).toThrow(
      "Invalid endpoint names: all, stats. Valid endpoints are: health, inference, logging, metadata, " +
        "model-config, model-repository, shared-memory, statistics, trace",
    );
    expect(() => resolveSecurity({ accessToken: "" })).toThrow(
      "security.accessToken: expected a secret, got an empty string",
    );
  });

  it.each([
    [{ header: "", value: "v" }, "restriction of 'health': expected a header and a value, got header ''"],
    [
      { header: "h", value: "" },
      "restriction of 'health': expected a header and a value, got header 'h' without a value",
    ],
  ])("reject the restriction %j", (restriction, reason) => {
    expect(() => new AccessGate({ health: restriction })).toThrow(reason);
  });
});

describe("the access gate", () => {
  const gate = new AccessGate({ trace: { header: "Key", value: "a=b" } });

  it.each([
    [undefined, "Key"],
    ["", "Key"],
    ["a=", "Key"],
    ["A=B", "Key"],
    ["a=b ", "Key"],
    ["a=b", undefined],
  ])("lets a request through only with the exact value: %j", (value, missing) => {
    expect(gate.missingHeader("trace", (header) => (header === "Key" ? value : "a=b"))).toBe(missing);
  });

  it("is open for all other groups", () => {
    for (const group of ENDPOINT_GROUPS.filter((name) => name !== "trace")) {
      expect(gate.guards(group)).toBe(false);
      expect(gate.missingHeader(group, () => undefined)).toBeUndefined();
    }
  });

  it("rejects unknown endpoint groups", () => {
    expect(() => new AccessGate({ stats: { header: "a", value: "b" } } as never)).toThrow("stats");
  });
});
