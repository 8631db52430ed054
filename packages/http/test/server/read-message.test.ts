import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { RequestMemory } from "@tritonjs/core/frontend";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { BodyBuffer } from "../../src/exchange/request.js";
import { readMessage } from "../../src/server/node-connections.js";

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
