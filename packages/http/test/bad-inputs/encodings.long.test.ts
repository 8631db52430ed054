import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { createGzip, deflateSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { send } from "../support/send.js";
import { expectAnswers, expectGoodRequestToWork, input, useServer } from "./bad-inputs.js";

const server = useServer();
const good = input("FP32", [1], [1]);
const gzip = { "content-encoding": "gzip" };

describe("broken compressed bodies", () => {
  expectAnswers(server, {
    "400 request body is not valid gzip data": {
      "half a gzip": { headers: gzip, body: gzipSync(good).subarray(0, 30) },
      "ten bytes of gzip": { headers: gzip, body: gzipSync(good).subarray(0, 10) },
      "bytes that are not gzip": { headers: gzip, body: good },
    },
    "400 nothing to be decompressed": { nothing: { headers: gzip, body: "" } },
    "500 failed to parse the request JSON buffer: Invalid value. at 0": {
      "a gzip of a gzip": { headers: gzip, body: gzipSync(gzipSync(good)) },
    },
    "400 request body is not valid deflate data": {
      "raw deflate": { headers: { "content-encoding": "deflate" }, body: Buffer.from("xx") },
    },
    "501 Unsupported compression type": {
      br: { headers: { "content-encoding": "br" }, body: good },
      unknown: { headers: { "content-encoding": "what" }, body: good },
      "two encodings": { headers: { "content-encoding": "gzip, gzip" }, body: good },
    },
    "400 Unsupported content-encoding, only 'identity' is supported.": {
      "gzip for generate": { path: "/v2/models/fp32/generate", headers: gzip, body: gzipSync(good) },
    },
    '200 "data":[1.0]': { "a deflate body declared as gzip": { headers: gzip, body: deflateSync(good) } },
  });

  it("bodies that grow a thousandfold are rejected at the limit", async () => {
    const zeros = Array<Buffer>(512).fill(Buffer.alloc(1 << 20));
    const bomb = await buffer(Readable.from(zeros).pipe(createGzip()));
    const before = process.memoryUsage().rss;
    const answer = await send(server.port, { path: "/v2/models/fp32/infer", headers: gzip, body: bomb });
    expect(answer.status).toBe(400);
    expect(answer.text).toContain("Decompressed data size exceeds the maximum allowed value of");
    expect(process.memoryUsage().rss - before).toBeLessThan(128 << 20);
    await expectGoodRequestToWork(server.port);
  });
});

describe("content types are ignored", () => {
  expectAnswers(server, {
    '200 "data":[1.0]': {
      "with a TAB": { headers: { "content-type": "application/json\t;charset=x" }, body: good },
      "utf-16": { headers: { "content-type": "application/json; charset=utf-16" }, body: good },
      multipart: { headers: { "content-type": "multipart/form-data" }, body: good },
      "an unreadable content type": { headers: { "content-type": ";;=" }, body: good },
    },
  });
});
