import { get, request } from "node:http";
import { connect } from "node:net";
import type { Tensor } from "@tritonjs/protocol";
import { expect, it } from "vitest";
import { keepingBackend } from "../../../../test/support/answering-backend.js";
import { openTriton, serveInThreads } from "./support.js";

it("a client that leaves cancels its request", async () => {
  const triton = openTriton();
  const reasons: string[] = [];
  let running = 0;
  triton.bind({
    modelName: "slow",
    inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
    outputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
    config: { batching: false },
    inferFunc: async (_requests, { signal }) => {
      running++;
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      reasons.push(signal.reason.code);
      throw signal.reason;
    },
  });
  const { url } = await serveInThreads(triton, 1);
  const body = JSON.stringify({ inputs: [{ name: "x", datatype: "FP32", shape: [1], data: [1] }] });
  const sent = request(`${url}/v2/models/slow/infer`, { method: "POST" });
  sent.on("error", () => {});
  sent.end(body);
  await expect.poll(() => running).toBe(1);
  sent.destroy();
  await expect.poll(() => reasons).toEqual(["CANCELLED"]);
});

it("a slow reader of a stream holds the model back", async () => {
  const triton = openTriton();
  const count = 2000;
  let made = 0;
  triton.bind({
    modelName: "stream",
    inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
    outputs: [{ name: "text", dtype: "BYTES", shape: [1] }],
    config: { decoupled: true, batching: false },
    inferFunc: async function* () {
      for (; made < count; made++) yield [{ text: ["x".repeat(16_384)] }];
    },
  });
  const { addresses } = await serveInThreads(triton, 1);
  const socket = connect(addresses.http!.port, "127.0.0.1");
  socket.pause();
  const body = '{"x":1}';
  socket.write(
    `POST /v2/models/stream/generate_stream HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  // The model stops when the buffers between it and the client are full.
  let before = -1;
  await expect
    .poll(
      () => {
        const isSteady = made > 0 && made === before;
        before = made;
        return isSteady;
      },
      { interval: 200 },
    )
    .toBe(true);
  expect(made).toBeLessThan(count);
  let events = 0;
  socket.on("data", (chunk: Buffer) => {
    events += chunk.toString("latin1").split("data: ").length - 1;
  });
  socket.resume();
  await new Promise((resolve) => socket.once("close", resolve));
  expect([made, events >= count - 50]).toEqual([count, true]);
});

it("requests in flight are answered when the server closes, and later connections are refused", async () => {
  const triton = openTriton();
  let release = (): void => {};
  let running = 0;
  triton.bind({
    modelName: "held",
    inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
    outputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
    config: { batching: false },
    inferFunc: async ([asked]) => {
      running++;
      await new Promise<void>((resolve) => {
        release = resolve;
      });
      return [{ x: asked!.inputs.x! }] as never;
    },
  });
  const { url, workers } = await serveInThreads(triton, 1);
  const body = JSON.stringify({ inputs: [{ name: "x", datatype: "FP32", shape: [1], data: [1] }] });
  const answer = fetch(`${url}/v2/models/held/infer`, { method: "POST", body });
  await expect.poll(() => running).toBe(1);
  const closed = triton.close();
  const ready = () =>
    fetch(`${url}/v2/health/ready`).then(
      ({ status }) => status,
      () => "refused",
    );
  await expect.poll(ready).not.toBe(200);
  release();
  expect((await answer).status).toBe(200);
  await closed;
  expect(workers.map(({ threadId }) => threadId)).toEqual([-1]);
  await expect(new Promise((resolve, reject) => get(url, resolve).once("error", reject))).rejects.toThrow(
    "ECONNREFUSED",
  );
});

it("a probe of readiness is answered while the main thread is blocked", async () => {
  const triton = openTriton();
  const { url } = await serveInThreads(triton, 1);
  const { Worker } = await import("node:worker_threads");
  const flag = new Int32Array(new SharedArrayBuffer(4));
  // Asks from another thread, and tells the blocked one that the answer has come.
  const code = `
    const { workerData: { url, flag } } = require("node:worker_threads");
    fetch(url + "/v2/health/ready").then(({ status }) => {
      Atomics.store(flag, 0, status);
      Atomics.notify(flag, 0);
    });`;
  const asking = new Worker(code, { eval: true, workerData: { url, flag } });
  Atomics.wait(flag, 0, 0, 30_000);
  expect(Atomics.load(flag, 0)).toBe(200);
  await asking.terminate();
});

it("the memory of a large request is freed when its backend releases it", async () => {
  const triton = openTriton();
  const seen: Tensor[] = [];
  triton.bind({ modelName: "releases", inferFunc: keepingBackend(seen, { releasesInputs: true }) });
  triton.bind({ modelName: "keeps", inferFunc: keepingBackend(seen, {}) });
  const { url } = await serveInThreads(triton, 1);
  const bytes = new Uint8Array(600_000);
  for (const model of ["releases", "keeps"]) {
    const json = JSON.stringify({
      inputs: [
        { name: "x", datatype: "FP32", shape: [150_000], parameters: { binary_data_size: bytes.length } },
      ],
    });
    const answer = await fetch(`${url}/v2/models/${model}/infer`, {
      method: "POST",
      headers: { "inference-header-content-length": String(json.length) },
      body: Buffer.concat([Buffer.from(json), bytes]),
    });
    expect(await answer.json()).toMatchObject({ outputs: [{ data: [150_000] }] });
  }
  expect(seen.map((tensor) => tensor.bytes.length)).toEqual([0, bytes.length]);
});
