import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { send } from "../support/send.js";
import { sendRaw, sendRawToEnd } from "../support/speak.js";
import { expectGoodRequestToWork, input, useServer } from "./bad-inputs.js";

const server = useServer({ limits: { headersTimeoutMs: 400, requestTimeoutMs: 800 } });
/** For requests that are slow on a busy machine. */
const patientServer = useServer();
const path = "/v2/models/fp32/infer";
const good = input("FP32", [2], [1, 2]);
const head = (headers: string) => `POST ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n\r\n`;
const goodRequest = head(`Content-Length: ${good.length}`) + good;

describe("request bodies", () => {
  it("over the limit are rejected, declared or not, and the connection stays open", async () => {
    const large = "x".repeat(9 << 20);
    const declared = head(`Content-Length: ${large.length}`) + large;
    const chunked = `${head("Transfer-Encoding: chunked")}${large.length.toString(16)}\r\n${large}\r\n0\r\n\r\n`;
    for (const refused of [declared, chunked]) {
      const answers = await sendRaw(patientServer.port, refused + goodRequest, '"data":[1.0,2.0]');
      expect(answers).toMatch(/^HTTP\/1\.1 400 /);
      expect(answers).toContain("exceeds the maximum allowed input size of 8454144 bytes");
    }
  });

  it("longer than declared leave bytes that the server rejects as another request", async () => {
    const answers = await sendRawToEnd(server.port, `${head("Content-Length: 2")}{}rest of it\r\n\r\n`);
    expect(answers).toMatch(/^HTTP\/1\.1 (?:405|500) .*Connection: close/s);
    await expectGoodRequestToWork(server.port);
  });

  it("shorter than declared time out", async () => {
    const answer = await sendRawToEnd(server.port, `${head("Content-Length: 99")}{`);
    expect(answer).toMatch(/^HTTP\/1\.1 408 /);
    expect(answer.toLowerCase()).toContain("connection: close");
    await expectGoodRequestToWork(server.port);
  });

  it("end with their connection when they continue slowly after the time limit", async () => {
    const client = connect({ port: server.port, host: "localhost", allowHalfOpen: true });
    const closed = new Promise((resolve) => client.once("close", resolve));
    client.on("error", () => {});
    client.resume();
    client.write(`${head("Content-Length: 999999999")}{`);
    const goOn = (error?: Error | null) => {
      if (!error) client.write(" ", () => setImmediate(goOn, client.errored));
    };
    client.once("end", () => goOn());
    await closed;
    await expectGoodRequestToWork(server.port);
  });

  it("are rejected in 100 000 chunks of one byte", async () => {
    const answer = await sendRawToEnd(
      patientServer.port,
      head("Transfer-Encoding: chunked") + "1\r\n \r\n".repeat(100_000),
    );
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain("Chunked request body exceeds maximum of 65536 non-empty chunks.");
    await expectGoodRequestToWork(patientServer.port);
  });

  it("end the connection at a broken chunk", async () => {
    const answer = await sendRawToEnd(server.port, `${head("Transfer-Encoding: chunked")}zz\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    await expectGoodRequestToWork(server.port);
  });

  it("are rejected with both a length and chunks, because these can smuggle requests", async () => {
    const answer = await sendRawToEnd(
      server.port,
      `${head("Content-Length: 5\r\nTransfer-Encoding: chunked")}0\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    await expectGoodRequestToWork(server.port);
  });

  it.each(["-1", "1e3", "5, 6", "x", "99999999999999999999"])(
    "are rejected with the declared length %s",
    async (length) => {
      expect(await sendRawToEnd(server.port, `${head(`Content-Length: ${length}`)}{}`)).toMatch(
        /^HTTP\/1\.1 400 /,
      );
      await expectGoodRequestToWork(server.port);
    },
  );
});

describe("request heads", () => {
  it.each([
    ["that never come", ""],
    ["that stop half way", `POST ${path} HTTP/1.1\r\nHost:`],
  ])("%s time out", async (_what, text) => {
    expect(await sendRawToEnd(server.port, text)).toMatch(/^(HTTP\/1\.1 408 |$)/);
    await expectGoodRequestToWork(server.port);
  });

  it.each([
    ["of 20 000 letters", head(`X-Long: ${"x".repeat(20_000)}`), 431],
    ["of another protocol", "\x16\x03\x01\x02\x00\x01\x00", 405],
    ["with a bare line feed in a name", head("a\nb: c"), 400],
    ["with a NUL", head("a: b\0c"), 400],
    ["with an unknown method", `NOTHING ${path} HTTP/1.1\r\nHost: x\r\n\r\n`, 405],
    ["of HTTP/3.7", `GET /v2 HTTP/3.7\r\nHost: x\r\n\r\n`, 400],
  ])("%s are rejected", async (_what, text, status) => {
    expect(await sendRawToEnd(server.port, text)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    await expectGoodRequestToWork(server.port);
  });

  it("use the first value of a duplicate header", async () => {
    const headers = `Content-Length: ${good.length}\r\nContent-Encoding: identity\r\nContent-Encoding: br`;
    expect(await sendRaw(server.port, head(headers) + good, "}]}")).toMatch(/^HTTP\/1\.1 200 /);
  });
});

describe("connections", () => {
  it("stay open after an error and serve requests that were already sent", async () => {
    const bad = `${head("Content-Length: 1")}{`;
    const answers = await sendRaw(server.port, bad + bad + goodRequest, '"data":[1.0,2.0]');
    expect(answers.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 500", "HTTP/1.1 500", "HTTP/1.1 200"]);
  });

  it("stay open after Expect: 100-continue", async () => {
    const asking = head(`Expect: 100-continue\r\nContent-Length: ${good.length}`);
    const answers = await sendRaw(server.port, asking + good, '"data":[1.0,2.0]');
    expect(answers).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /);
  });

  it.each([
    ["in the head", `POST ${path} HT`],
    ["before the body", head("Content-Length: 99")],
    ["in the body", `${head("Content-Length: 99")}{`],
    ["in a chunk", `${head("Transfer-Encoding: chunked")}5\r\n{`],
    ["while it waits for the answer", goodRequest],
  ])("may end %s", async (_when, text) => {
    await new Promise<void>((resolve, reject) => {
      const socket = connect(server.port, "localhost", () =>
        socket.write(text, () => socket.resetAndDestroy()),
      );
      socket.on("close", () => resolve()).on("error", reject);
    });
    await expectGoodRequestToWork(server.port);
  });

  it("do not disturb each other when there are many", async () => {
    const all = await Promise.all(
      Array.from({ length: 60 }, (_, i) =>
        i % 3 === 0
          ? sendRawToEnd(server.port, `${head("Content-Length: 99")}{`).then(() => 0)
          : send(server.port, { path, body: i % 3 === 1 ? good : "{" }).then(({ status }) => status),
      ),
    );
    expect(all).toEqual(Array.from({ length: 60 }, (_, i) => [0, 200, 500][i % 3]));
  });
});
