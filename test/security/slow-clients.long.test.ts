import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { sample, type Triton } from "@tritonjs/core";
import { encodeMessage, inference } from "@tritonjs/protocol/grpc";
import { serviceOf } from "@tritonjs/server";
import { describe, expect, it, onTestFinished } from "vitest";
import { framed } from "../../packages/grpc/test/support/raw-call.js";
import { FRAME, frameOf, openFrame, rawConnection } from "../../packages/grpc/test/support/raw-frames.js";
import { sendRawToEnd } from "../../packages/http/test/support/speak.js";
import { openServer } from "./support/open-server.js";

const MIB = 2 ** 20;
const STREAM_INFER = "/inference.GRPCInferenceService/ModelStreamInfer";

/** A model with one large answer, and one with endless answers of 64 KiB. */
function bindLarge(triton: Triton, count: () => void = () => {}): void {
  const inputs = [{ name: "n", dtype: "INT32", shape: [1] }] as const;
  triton.bind({
    modelName: "large",
    inputs,
    outputs: [{ name: "y", dtype: "UINT8", shape: [-1] }],
    inferFunc: sample(() => ({ y: new Uint8Array(16 * MIB) })),
  });
  triton.bind({
    modelName: "endless",
    inputs,
    outputs: [{ name: "y", dtype: "BYTES", shape: [1] }],
    inferFunc: sample(async function* () {
      const piece = Buffer.alloc(65_536, "x");
      for (;;) {
        count();
        yield { y: [piece] };
        // A turn of the event loop, in which the sockets work.
        await new Promise((resolve) => setImmediate(resolve));
      }
    }),
  });
}

const post = (path: string, body: string) =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

describe("a slow reader", () => {
  it("of an HTTP answer is cut off, and other clients are served", async () => {
    const server = await openServer({ bind: bindLarge, http: { limits: { sendTimeoutMs: 100 } } });
    const body =
      '{"inputs":[{"name":"n","datatype":"INT32","shape":[1],"data":[1]}],"parameters":{"binary_data_output":true}}';
    const client = connect(server.httpPort, "localhost");
    onTestFinished(() => void client.destroy());
    client.on("error", () => {});
    client.pause();
    client.write(post("/v2/models/large/infer", body));
    // A write to a connection that the server has ended fails.
    await expect
      .poll(() => {
        client.write(" ");
        return client.destroyed;
      })
      .toBe(true);
    await server.serves();
  });

  it("whose model takes long, or that reads in pieces, is not cut off", async () => {
    const server = await openServer({ bind: bindLarge, http: { limits: { sendTimeoutMs: 2000 } } });
    const answer = await fetch(`http://localhost:${server.httpPort}/v2/models/large/infer`, {
      method: "POST",
      body: '{"inputs":[{"name":"n","datatype":"INT32","shape":[1],"data":[1]}],"parameters":{"binary_data_output":true}}',
    });
    let length = 0;
    for await (const piece of answer.body!) length += piece.length;
    expect(length).toBeGreaterThan(16 * MIB);
  });

  it("of a stream of events pauses the model", async () => {
    let made = 0;
    const server = await openServer({ bind: (triton) => bindLarge(triton, () => made++) });
    const client = connect(server.httpPort, "localhost");
    onTestFinished(() => void client.destroy());
    client.pause();
    client.write(post("/v2/models/endless/generate_stream", '{"n":1}'));
    await expectPause(() => made);
    await server.serves();
  });

  it("of a gRPC stream, which holds its window at zero, pauses the model", async () => {
    let made = 0;
    const server = await openServer({ bind: (triton) => bindLarge(triton, () => made++) });
    const session = connectHttp2(`http://localhost:${server.grpcPort}`, {
      settings: { initialWindowSize: 0 },
    });
    onTestFinished(() => session.destroy());
    session.on("error", () => {});
    const call = session.request({
      ":method": "POST",
      ":path": STREAM_INFER,
      "content-type": "application/grpc",
      te: "trailers",
    });
    call.on("error", () => {});
    call.write(
      framed(
        encodeMessage(inference.ModelInferRequest, {
          modelName: "endless",
          inputs: [{ name: "n", datatype: "INT32", shape: [1], contents: { intContents: [1] } }],
        }),
      ),
    );
    await expectPause(() => made);
    await server.serves();
  });
});

/** Expects that the model makes some pieces and then stops: fewer than 256 MiB of them wait for the client. */
async function expectPause(made: () => number): Promise<void> {
  await expect.poll(made).toBeGreaterThan(0);
  let before = -1;
  await expect
    .poll(
      () => {
        const isSame = made() === before;
        before = made();
        return isSame;
      },
      { interval: 100 },
    )
    .toBe(true);
  expect(made()).toBeLessThan(4096);
}

describe("a slow writer (slowloris)", () => {
  // The good requests of `serves` have the same limits, so a pause of the process must not reach them.
  const limits = { headersTimeoutMs: 1000, requestTimeoutMs: 2000 };
  const slow = [
    ["of the head", "POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nX-Slow:"],
    ["of the body", "POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{"],
    [
      "of a chunk",
      "POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{",
    ],
  ];

  it.each(slow)("%s is cut off with 408", async (_what, text) => {
    const server = await openServer({ http: { limits } });
    expect(await sendRawToEnd(server.httpPort, text)).toMatch(/^HTTP\/1\.1 408 /);
    await server.serves();
  });

  it("of gRPC messages reserves only what has arrived, and its deadline ends the call", async () => {
    const server = await openServer();
    const { socket } = await rawConnection(server.grpcPort);
    const { requestMemory } = serviceOf(server.triton);
    for (let id = 1; id < 200; id += 2) {
      socket.write(openFrame(id, STREAM_INFER));
      // Announces 60 MB and sends one byte.
      socket.write(frameOf(FRAME.DATA, id, Buffer.of(0, 0x03, 0x93, 0x87, 0x00, 1)));
    }
    await expect.poll(() => requestMemory.usedBytes).toBeGreaterThan(0);
    expect(requestMemory.usedBytes).toBeLessThan(MIB);
    await server.serves();
    socket.destroy();
    await once(socket, "close");
    await expect.poll(() => requestMemory.usedBytes).toBe(0);
  });
});
