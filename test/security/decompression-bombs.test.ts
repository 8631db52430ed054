import { deflateSync, gzipSync } from "node:zlib";
import { status } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { framed, rawCall, rawSession } from "../../packages/grpc/test/support/raw-call.js";
import { useServer } from "./support/open-server.js";

const server = useServer();

const MIB = 2 ** 20;
/** 48 MiB of zeros in about 48 KiB: within the limit on sizes, a thousandfold in memory. */
const zeros = Buffer.alloc(48 * MIB);

describe("a decompression bomb", () => {
  it.each([
    ["gzip", gzipSync(zeros)],
    ["deflate", deflateSync(zeros)],
  ])("in %s over HTTP is refused for its ratio, and its memory is given back", async (encoding, body) => {
    const { requestMemory } = server.triton.service;
    const before = requestMemory.refusals.RATIO;
    const answer = await fetch(`http://localhost:${server.httpPort}/v2/models/echo/infer`, {
      method: "POST",
      headers: { "content-encoding": encoding },
      body,
    });
    expect([answer.status, await answer.text()]).toEqual([400, expect.stringMatching(/ratio|100 times/)]);
    expect(requestMemory.refusals.RATIO).toBe(before + 1);
    await expect.poll(() => requestMemory.usedBytes).toBe(0);
    await server.serves();
  });

  it("in gzip over gRPC is refused for its ratio", async () => {
    const session = rawSession(`localhost:${server.grpcPort}`);
    const answer = await rawCall(session, framed(gzipSync(zeros), 1), { "grpc-encoding": "gzip" });
    expect(answer.grpcStatus).toBe(status.RESOURCE_EXHAUSTED);
    await expect.poll(() => server.triton.service.requestMemory.usedBytes).toBe(0);
    await server.serves();
  });

  it("of gzip in gzip is unpacked once", async () => {
    const body = gzipSync(gzipSync(zeros));
    const answer = await fetch(`http://localhost:${server.httpPort}/v2/models/echo/infer`, {
      method: "POST",
      headers: { "content-encoding": "gzip" },
      body,
    });
    expect(answer.status).toBe(500);
    expect(await answer.text()).toContain("failed to parse the request JSON buffer");
    await server.serves();
  });
});
