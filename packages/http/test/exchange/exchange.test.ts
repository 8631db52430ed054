import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { TritonError } from "@tritonjs/core";
import { RequestMemory } from "@tritonjs/server";
import { afterEach, describe, expect, it, onTestFinished, test, vi } from "vitest";
import { LoopTurns } from "../../src/exchange/loop-turns.js";
import { BodyBuffer, ClientGone } from "../../src/exchange/request.js";
import { readMessage } from "../../src/server/node-connections.js";
import { IdentityService, identityConfig } from "../support/identity-service.js";
import { send } from "../support/send.js";
import { startHttp } from "../support/start-http.js";

const MIB = 1024 * 1024;

describe("the memory for a body", () => {
  it("is not allocated for the announced size alone", () => {
    const body = new BodyBuffer(64 * MIB, 60 * MIB, undefined);
    body.add(Uint8Array.of(1));
    expect(body.bytes().buffer.byteLength).toBeLessThanOrEqual(MIB);
  });

  it("is a few bytes for the first byte of any body, and at most eight times the bytes that have come", () => {
    for (const declared of [undefined, 2048, MIB, 60 * MIB]) {
      const body = new BodyBuffer(64 * MIB, declared, undefined);
      body.add(Uint8Array.of(1));
      expect(body.bytes().buffer.byteLength).toBeLessThanOrEqual(1024 + 8);
      let length = 1;
      for (; length < 1_000_000; length += 1000) {
        body.add(new Uint8Array(1000));
        expect(body.bytes().buffer.byteLength).toBeLessThanOrEqual(8 * (length + 1000) + 8);
        if (declared === 2048) break;
      }
    }
  });

  it.each([
    [undefined, "request JSON size of 65601 bytes exceeds the maximum allowed input size of 65600 bytes"],
    [0, "Raw input has a byte_size (65601 bytes) that exceeds the maximum allowed value of 8 bytes"],
    [4, "request body size of 65601 bytes exceeds the maximum allowed input size of 65600 bytes"],
  ])("is not allocated beyond the limit: tensors at %s", (tensorsAt, text) => {
    expect(() => new BodyBuffer(8, 8 * 8 + 64 * 1024 + 1, tensorsAt)).toThrow(text);
  });

  it("is one aligned piece once a part has arrived", () => {
    const body = new BodyBuffer(64 * MIB, 3 * MIB, 5);
    for (let i = 0; i < 6; i++) body.add(new Uint8Array(MIB / 2).fill(i));
    const { buffer, byteOffset, length } = body.bytes();
    expect([length, (byteOffset + 5) % 8]).toEqual([3 * MIB, 0]);
    expect(buffer.byteLength).toBe(3 * MIB + 3);
    expect([0, 1, 2, 3, 4, 5].map((i) => body.bytes()[(i * MIB) / 2])).toEqual([0, 1, 2, 3, 4, 5]);
  });
});

/** An event loop on which each step takes a millisecond, and whose turns the test makes. */
function openLoop() {
  let now = 0;
  let deferred: (() => void)[] = [];
  const turns = new LoopTurns({ now: () => now, defer: (run) => void deferred.push(run) });
  const done: string[] = [];
  /** Work of some steps, which notes each. */
  const work = (name: string, steps: number) =>
    function* (): Generator<void, string> {
      for (let left = steps; left > 0; left--) {
        now++;
        done.push(name);
        if (left > 1) yield;
      }
      return name;
    };
  const turn = () => {
    done.length = 0;
    const due = deferred;
    deferred = [];
    for (const run of due) run();
    return done.join("");
  };
  return { turns, work, turn, done };
}

const client = { gone: false };

describe("the turns of long documents", () => {
  it("does short work at once", () => {
    const { turns, work } = openLoop();
    expect(turns.read(client, work("a", 3))).toBe("a");
  });

  it("does five milliseconds of work in each turn of the event loop", async () => {
    const { turns, work, turn, done } = openLoop();
    const result = turns.read(client, work("a", 12));
    expect(done).toHaveLength(5);
    expect([turn(), turn(), turn()]).toEqual(["aaaaa", "aa", ""]);
    await expect(result).resolves.toBe("a");
  });

  it("reads one document after the other, within the same five milliseconds", async () => {
    const { turns, work, turn } = openLoop();
    const all = [
      turns.read(client, work("a", 7)),
      turns.read(client, work("b", 2)),
      turns.read(client, work("c", 2)),
    ];
    expect([turn(), turn()]).toEqual(["aabbc", "c"]);
    await expect(Promise.all(all)).resolves.toEqual(["a", "b", "c"]);
  });

  it("shares the turn with the work that was done at once", () => {
    const { turns, work, turn, done } = openLoop();
    turns.read(client, work("a", 4));
    turns.read(client, work("b", 4));
    expect(done.join("")).toBe("aaaab");
    expect(turn()).toBe("bbb");
  });

  it("writes answers before it reads further requests", () => {
    const { turns, work, turn } = openLoop();
    turns.read(client, work("r", 8));
    turns.write(client, work("w", 4));
    expect([turn(), turn()]).toEqual(["wwwwr", "rr"]);
  });

  it("drops the work of a client that has left", async () => {
    const { turns, work, turn } = openLoop();
    const leaving = { gone: false };
    const left = turns.read(leaving, work("a", 8));
    const next = turns.read(client, work("b", 2));
    leaving.gone = true;
    expect(turn()).toBe("bb");
    await expect(left).rejects.toBeInstanceOf(ClientGone);
    await expect(next).resolves.toBe("b");
  });

  it("passes the error of a step on, and goes on with the next work", async () => {
    const { turns, work, turn } = openLoop();
    turns.read(client, work("a", 6));
    // biome-ignore lint/correctness/useYield: it fails in its first step.
    const failing = turns.read(client, function* () {
      throw new Error("broken");
    });
    const next = turns.read(client, work("b", 1));
    expect(turn()).toBe("ab");
    await expect(failing).rejects.toThrow("broken");
    await expect(next).resolves.toBe("b");
    expect(() =>
      openLoop().turns.read(client, () => {
        throw new Error("empty");
      }),
    ).toThrow("empty");
  });
});

const outgoing = {
  path: "/v2/models/m/infer",
  body: JSON.stringify({ inputs: [{ name: "IN", datatype: "INT32", shape: [1], data: [1] }] }),
};

/** The retry-after header of a request rejected with this time. */
async function retryAfter(retryAfterMs?: number): Promise<string | undefined> {
  const service = new IdentityService(identityConfig("m", "INT32"));
  service.onRequest = () => {
    throw new TritonError("UNAVAILABLE", "too late", retryAfterMs === undefined ? {} : { retryAfterMs });
  };
  const { status, text, headers } = await send(await startHttp(service), outgoing);
  expect({ status, text }).toEqual({ status: 503, text: '{"error":"too late"}' });
  return headers["retry-after"];
}

describe("response", () => {
  it.each([
    [1, "1"],
    [1000, "1"],
    [1001, "2"],
  ])(
    "a rejection that ends in %d ms has a retry-after header in whole seconds",
    async (milliseconds, seconds) => {
      expect(await retryAfter(milliseconds)).toBe(seconds);
    },
  );

  it("other rejections have no retry-after header", async () => {
    expect(await retryAfter()).toBeUndefined();
  });
});

describe("read message", () => {
  const LIMIT = 8 * 1024 * 1024;

  const SIZE = 600_000;

  /** Starts a server that answers each body with itself. `prepare` sees each message before it is read. */
  async function startEcho(prepare: (message: IncomingMessage) => void = () => {}): Promise<string> {
    const memory = new RequestMemory();
    const server = createServer(async (incoming, outgoing) => {
      prepare(incoming);
      outgoing.end(await readMessage(incoming, memory.share(), LIMIT, 0));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  /** The chunks that bodies were made of. */
  function collectChunks(): Buffer[] {
    const chunks: Buffer[] = [];
    const { add } = BodyBuffer.prototype;
    vi.spyOn(BodyBuffer.prototype, "add").mockImplementation(function (this: BodyBuffer, chunk, kept) {
      chunks.push(chunk as Buffer);
      add.call(this, chunk, kept);
    });
    return chunks;
  }

  async function echo(url: string, body: Uint8Array<ArrayBuffer>): Promise<Buffer> {
    const answer = await fetch(url, { method: "POST", body });
    return Buffer.from(await answer.arrayBuffer());
  }

  /** Takes memory that was freed, and overwrites it. */
  const overwriteFreedMemory = (): Buffer[] =>
    Array.from({ length: 200 }, () => Buffer.allocUnsafeSlow(64 * 1024).fill(0xff));

  afterEach(() => void vi.restoreAllMocks());

  describe("the body of a message of Node", () => {
    test("stays as it was sent when the memory of its chunks is freed and used again", async () => {
      const chunks = collectChunks();
      const url = await startEcho((message) => void message.once("data", overwriteFreedMemory));
      const bodies = Array.from({ length: 16 }, (_, i) => new Uint8Array(SIZE).fill(i + 1));
      for (let round = 0; round < 2; round++) {
        const answers = await Promise.all(bodies.map((body) => echo(url, body)));
        answers.forEach((answer, i) => void expect(answer.equals(bodies[i]!)).toBe(true));
      }
      expect(chunks.length).toBeGreaterThan(0);
    });

    test("takes its large chunks from the garbage collector", async () => {
      const chunks = collectChunks();
      const url = await startEcho();
      const body = new Uint8Array(SIZE).fill(7);
      expect((await echo(url, body)).equals(body)).toBe(true);
      overwriteFreedMemory();
      const left = chunks.reduce((sum, { length }) => sum + length, 0);
      expect(left).toBeLessThan(SIZE / 2);
    });

    test("leaves the chunks to another listener that sees them", async () => {
      let seen = 0;
      const url = await startEcho((message) => {
        message.on("data", (chunk: Buffer) => setImmediate(() => (seen += chunk.length)));
      });
      await echo(url, new Uint8Array(SIZE));
      await new Promise(setImmediate);
      expect(seen).toBe(SIZE);
    });
  });
});
