import { connect } from "node:net";
import type { Triton } from "@tritonjs/core";
import { ownedByAnswer } from "@tritonjs/core/internal";
import { Tensor } from "@tritonjs/protocol";
import { expect, it } from "vitest";
import { answeringBackend } from "../support/answering-backend.js";
import { firstDifference } from "../support/first-difference.js";
import { connectAll } from "./support/connect-all.js";
import { openTriton } from "./support/open-triton.js";

/** Elements of an output whose memory is worth freeing. */
const LARGE = 17_000;

/** Binds a model that answers with as many numbers as `x` says, in memory that belongs to the answer, and keeps them. */
function bindAnswering(triton: Triton): Float32Array[] {
  const sent: Float32Array[] = [];
  const inferFunc = answeringBackend([-1], (x) => {
    const count = Number(x.elements[0]);
    const elements = Float32Array.from({ length: count }, (_, i) => i);
    sent.push(elements);
    ownedByAnswer(elements.buffer);
    return Tensor.fromElements("FP32", [count], elements);
  });
  triton.bind({ modelName: "answering", inferFunc, config: { batching: false } });
  return sent;
}

it("the memory of an answer is kept over gRPC, and over HTTP where the answer is not sent from it", async () => {
  const triton = openTriton();
  const sent = bindAnswering(triton);
  const clients = await connectAll(triton);
  const expected = Array.from({ length: LARGE }, (_, i) => i);
  for (const client of clients) {
    const inputs = [{ name: "x", datatype: "FP32", shape: [1], elements: [LARGE] } as const];
    const { outputs } = await client.infer({ model: "answering", inputs: [...inputs] });
    expect(firstDifference(outputs[0]!.elements, expected)).toBe(-1);
  }
  // The clients for HTTP ask for JSON or for compression.
  expect(sent.map(({ length }) => length)).toEqual(clients.map(() => LARGE));
});

it("the memory of an answer over HTTP is freed when a slow client has read it, while others leave", async () => {
  const triton = openTriton();
  const sent = bindAnswering(triton);
  const { addresses } = await triton.serve();
  const COUNT = 1_500_000;
  const REQUESTS = 3;
  const json = `{"inputs":[{"name":"x","datatype":"FP32","shape":[1],"data":[${COUNT}]}],"outputs":[{"name":"y","parameters":{"binary_data":true}}]}`;
  const head = `POST /v2/models/answering/infer HTTP/1.1\r\nHost: a\r\nContent-Length: ${json.length}\r\n`;
  const open = () => {
    const socket = connect(addresses.http!.port, "127.0.0.1");
    socket.pause();
    return socket;
  };
  const slow = open();
  slow.write(`${head}\r\n${json}`.repeat(REQUESTS - 1));
  slow.write(`${head}Connection: close\r\n\r\n${json}`);
  const leaving = open();
  leaving.write(`${head}\r\n${json}`);
  await expect.poll(() => sent.length).toBe(REQUESTS + 1);
  leaving.destroy();
  const chunks: Buffer[] = [];
  slow.on("data", (chunk: Buffer) => chunks.push(chunk));
  slow.resume();
  await new Promise((resolve) => slow.once("close", resolve));
  const all = Buffer.concat(chunks);
  const wanted = Buffer.from(Float32Array.from({ length: COUNT }, (_, i) => i).buffer);
  let at = 0;
  for (let i = 0; i < REQUESTS; i++) {
    const start = all.indexOf("]}", all.indexOf("\r\n\r\n", at)) + 2;
    expect(all.compare(wanted, 0, wanted.length, start, start + wanted.length)).toBe(0);
    at = start + wanted.length;
  }
  expect(at).toBe(all.length);
  await expect.poll(() => sent.filter(({ length }) => length === 0).length).toBeGreaterThanOrEqual(REQUESTS);
});
