import { deflateSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { send } from "../support/send.js";
import { expectAnswers, expectGoodRequestToWork, input, useServer } from "./bad-inputs.js";

const server = useServer();
const good = input("FP32", [1], [1]);
const gzip = { "content-encoding": "gzip" };

describe("broken compressed bodies", () => {
  expectAnswers(server, {
    "half a gzip": {
      headers: gzip,
      body: gzipSync(good).subarray(0, 30),
      status: 400,
      text: "request body is not valid gzip data",
    },
    "ten bytes of gzip": {
      headers: gzip,
      body: gzipSync(good).subarray(0, 10),
      status: 400,
      text: "request body is not valid gzip data",
    },
    "bytes that are not gzip": {
      headers: gzip,
      body: good,
      status: 400,
      text: "request body is not valid gzip data",
    },
    nothing: { headers: gzip, body: "", status: 400, text: "nothing to be decompressed" },
    "a gzip of a gzip": {
      headers: gzip,
      body: gzipSync(gzipSync(good)),
      status: 500,
      text: "failed to parse the request JSON buffer: Invalid value. at 0",
    },
    "raw deflate": {
      headers: { "content-encoding": "deflate" },
      body: Buffer.from("xx"),
      status: 400,
      text: "request body is not valid deflate data",
    },
    br: {
      headers: { "content-encoding": "br" },
      body: good,
      status: 501,
      text: "Unsupported compression type",
    },
    unknown: {
      headers: { "content-encoding": "what" },
      body: good,
      status: 501,
      text: "Unsupported compression type",
    },
    "two encodings": {
      headers: { "content-encoding": "gzip, gzip" },
      body: good,
      status: 501,
      text: "Unsupported compression type",
    },
    "gzip for generate": {
      path: "/v2/models/fp32/generate",
      headers: gzip,
      body: gzipSync(good),
      status: 400,
      text: "Unsupported content-encoding, only 'identity' is supported.",
    },
    "a deflate body declared as gzip": {
      headers: gzip,
      body: deflateSync(good),
      status: 200,
      text: '"data":[1.0]',
    },
  });

  it("bodies that grow a thousandfold are rejected at the limit", async () => {
    const bomb = gzipSync(Buffer.alloc(512 << 20));
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
    "with a TAB": {
      headers: { "content-type": "application/json\t;charset=x" },
      body: good,
      status: 200,
      text: '"data":[1.0]',
    },
    "utf-16": {
      headers: { "content-type": "application/json; charset=utf-16" },
      body: good,
      status: 200,
      text: '"data":[1.0]',
    },
    multipart: {
      headers: { "content-type": "multipart/form-data" },
      body: good,
      status: 200,
      text: '"data":[1.0]',
    },
    "an unreadable content type": {
      headers: { "content-type": ";;=" },
      body: good,
      status: 200,
      text: '"data":[1.0]',
    },
  });
});
