import { connect } from "node:http2";
import { connect as connectSocket } from "node:net";
import { gzipSync } from "node:zlib";
import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { InferenceServerClient } from "@tritonjs/client/http";
import { sample, type Triton } from "@tritonjs/core";
import { Tensor, type TensorSpec } from "@tritonjs/protocol";
import { ownedByAnswer } from "@tritonjs/server/internal";
import { describe, expect, it } from "vitest";
import type { Client, NamedTensor, Way } from "../conformance/clients/client.js";
import { answeringBackend, keepingBackend } from "../support/answering-backend.js";
import { firstDifference } from "../support/first-difference.js";
import { identityOnnx } from "../support/onnx-models.js";
import { connectAll } from "./support/connect-all.js";
import { openTriton } from "./support/open-triton.js";

/** The headers that end a call with a message of these bytes. */
function callWith(url: string, message: Uint8Array): Promise<object> {
  const session = connect(`http://${url}`);
  const header = Buffer.alloc(5);
  header.writeUInt32BE(message.length, 1);
  return new Promise((resolve, reject) => {
    const stream = session.request({
      ":method": "POST",
      ":path": "/inference.GRPCInferenceService/ModelInfer",
      "content-type": "application/grpc",
      te: "trailers",
    });
    stream.on("response", (headers) => {
      resolve(headers);
      session.destroy();
    });
    stream.on("error", reject);
    stream.end(Buffer.concat([header, message]));
  });
}

describe("a limit of request memory", () => {
  it("HTTP and gRPC share one memory budget, which the metrics page reports", async () => {
    const triton = openTriton({ requestMemory: { byteSize: 10_000 } });
    let arrive = (): void => {};
    let answer = (): void => {};
    const arrived = new Promise<void>((resolve) => (arrive = resolve));
    const told = new Promise<void>((resolve) => (answer = resolve));
    triton.bind({
      modelName: "slow",
      inputs: [{ name: "x", dtype: "UINT8", shape: [-1] }],
      outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
      inferFunc: sample(async ({ x }) => {
        arrive();
        await told;
        return { y: [x.data.length] };
      }),
      config: { batching: false },
    });
    const { addresses } = await triton.serve();
    const infer = (body: Uint8Array<ArrayBuffer>, headers = {}) =>
      fetch(`${addresses.http!.url}/v2/models/slow/infer`, {
        method: "POST",
        headers: { "inference-header-content-length": "0", ...headers },
        body,
      });
    const metrics = async () => {
      const page = await (await fetch(`${addresses.metrics!.url}/metrics`)).text();
      return page.split("\n").filter((line) => line.startsWith("tritonjs_request_memory"));
    };
    const overHttp = infer(new Uint8Array(8000));
    await arrived;
    const overGrpc = await callWith(addresses.grpc!.url, Buffer.alloc(4000));
    expect(overGrpc).toMatchObject({ "grpc-status": "14", "grpc-retry-pushback-ms": "1000" });
    const bomb = await infer(gzipSync(new Uint8Array(5000)) as Uint8Array<ArrayBuffer>, {
      "content-encoding": "gzip",
    });
    expect([bomb.status, bomb.headers.get("retry-after")]).toEqual([503, "1"]);
    expect(await metrics()).toEqual([
      "tritonjs_request_memory_used_bytes 8000",
      "tritonjs_request_memory_limit_bytes 10000",
      'tritonjs_request_memory_refused_total{reason="BUDGET"} 2',
      'tritonjs_request_memory_refused_total{reason="QUEUE"} 0',
      'tritonjs_request_memory_refused_total{reason="RATIO"} 0',
    ]);
    answer();
    expect((await overHttp).status).toBe(200);
    expect((await metrics())[0]).toBe("tritonjs_request_memory_used_bytes 0");
  });
});

/** Elements of a request whose memory is worth freeing, and of one that is left to the garbage collector. */
const LARGE = 17_000;

const SMALL = 1000;

/** The ways in which a large tensor arrives in memory that belongs to its request alone. */
const OWN_MEMORY: readonly Way[] = ["HTTP binary", "gRPC raw", "gRPC stream"];

const numbers = (length: number, first = 0): NamedTensor => ({
  name: "x",
  datatype: "FP32",
  shape: [length],
  elements: Array.from({ length }, (_, i) => first + i),
});

/** Sends a tensor in each way, and returns the number of bytes that are left of it, by the way. */
async function bytesLeft(clients: readonly Client[], model: string, length: number, seen: Tensor[]) {
  const left: Partial<Record<Way, number>> = {};
  for (const client of clients) {
    await client.infer({ model, inputs: [numbers(length)] }).catch(() => {});
    left[client.way] = seen.splice(0)[0]!.bytes.length;
  }
  return left;
}

describe("the memory of the inputs of a request", () => {
  it("is freed with the answer where it is large, arrived in memory of its own, and its backend releases it", async () => {
    const triton = openTriton();
    const seen: Tensor[] = [];
    triton.bind({ modelName: "releases", inferFunc: keepingBackend(seen, { releasesInputs: true }) });
    triton.bind({ modelName: "fails", inferFunc: keepingBackend(seen, { releasesInputs: true }, true) });
    triton.bind({ modelName: "keeps", inferFunc: keepingBackend(seen, {}) });
    const clients = await connectAll(triton);
    const all = (bytes: number) => Object.fromEntries(clients.map(({ way }) => [way, bytes]));
    const none = Object.fromEntries(OWN_MEMORY.map((way) => [way, 0]));
    expect(await bytesLeft(clients, "releases", LARGE, seen)).toEqual({ ...all(4 * LARGE), ...none });
    expect(await bytesLeft(clients, "releases", SMALL, seen)).toEqual(all(4 * SMALL));
    expect(await bytesLeft(clients, "keeps", LARGE, seen)).toEqual(all(4 * LARGE));
    // An executor that fails may still read.
    expect(await bytesLeft(clients, "fails", LARGE, seen)).toEqual(all(4 * LARGE));
  });

  it("is kept for a callback, which may keep its inputs", async () => {
    const triton = openTriton();
    const kept: Float32Array[] = [];
    triton.bind({
      modelName: "last",
      inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
      inferFunc: sample(({ x }) => {
        kept.push(x.data);
        return { y: Float32Array.of(x.data.length) };
      }),
    });
    const clients = await connectAll(triton);
    for (const client of clients) await client.infer({ model: "last", inputs: [numbers(LARGE)] });
    expect(kept.map(({ length }) => length)).toEqual(clients.map(() => LARGE));
  });

  it("is freed with the answer of a callback that says it keeps none, unless the answer is a view of it", async () => {
    const triton = openTriton();
    const kept: Float32Array[] = [];
    const bind = (modelName: string, answer: (x: Float32Array) => Readonly<Record<string, Float32Array>>) => {
      const names = Object.keys(answer(new Float32Array(1)));
      triton.bind({
        modelName,
        inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
        outputs: names.map((name): TensorSpec => ({ name, dtype: "FP32", shape: [-1] })),
        inferFunc: (requests) =>
          requests.map(({ inputs }) => {
            const { data } = inputs.x!;
            kept.push(data as Float32Array);
            return answer(data as Float32Array);
          }),
        config: { batching: false },
        releasesInputs: true,
      });
    };
    bind("count", (x) => ({ y: Float32Array.of(x.length) }));
    bind("mirror", (x) => ({ y: x }));
    bind("halves", (x) => ({ first: x.subarray(0, x.length / 2), second: x.subarray(x.length / 2) }));
    const clients = await connectAll(triton);
    const input = numbers(LARGE);
    for (const client of clients) {
      const isOwn = OWN_MEMORY.includes(client.way);
      const ask = async (model: string) => {
        const { outputs } = await client.infer({ model, inputs: [input] });
        return outputs.map(({ elements }) => elements);
      };
      expect(await ask("count")).toEqual([[LARGE]]);
      expect(kept.pop()!.length, client.way).toBe(isOwn ? 0 : LARGE);
      expect(await ask("mirror")).toEqual([input.elements]);
      expect(await ask("halves")).toEqual([
        input.elements.slice(0, LARGE / 2),
        input.elements.slice(LARGE / 2),
      ]);
      // The answer is not sent from this memory, or the system may do so after it was written.
      expect(kept.splice(0).map(({ length }) => length)).toEqual([LARGE, LARGE]);
    }
  });

  it("is not freed under strings in an answer that lie in it", async () => {
    const triton = openTriton();
    triton.bind({
      modelName: "cut",
      inputs: [{ name: "x", dtype: "UINT8", shape: [-1] }],
      outputs: [{ name: "y", dtype: "BYTES", shape: [1] }],
      inferFunc: (requests) =>
        requests.map(({ inputs: { x } }) => ({ y: [(x!.data as Uint8Array).subarray(1, 5)] })),
      config: { batching: false },
      releasesInputs: true,
    });
    const { addresses } = await triton.serve();
    const client = new InferenceServerClient(addresses.http!.url);
    const data = new Uint8Array(4 * LARGE).fill(7);
    const result = await client.infer("cut", {
      inputs: { x: { datatype: "UINT8", shape: [4 * LARGE], data } },
    });
    expect([...result.elements("y", "BYTES")[0]!]).toEqual([7, 7, 7, 7]);
    client.close();
  });

  it("is freed once HTTP has sent it as the answer of such a callback", async () => {
    const triton = openTriton();
    let kept: Float32Array = new Float32Array();
    triton.bind({
      modelName: "mirror",
      inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [-1] }],
      inferFunc: sample(({ x }) => {
        kept = x.data;
        return { y: x };
      }),
      releasesInputs: true,
    });
    const { addresses } = await triton.serve();
    const client = new InferenceServerClient(addresses.http!.url);
    const data = Float32Array.from({ length: LARGE }, (_, i) => i);
    const result = await client.infer("mirror", {
      inputs: { x: { datatype: "FP32", shape: [LARGE], data } },
    });
    expect(firstDifference(result.elements("y", "FP32"), data)).toBe(-1);
    await expect.poll(() => kept.length).toBe(0);
    client.close();
  });

  it.each(["native", "worker"] as const)(
    "is freed by the engine %s without an effect on any answer",
    async (engine) => {
      const triton = openTriton({ responseCache: { byteSize: 2 ** 24 } });
      triton.bind({
        modelName: "copy",
        inferFunc: onnxruntime({ model: identityOnnx("FLOAT", ["batch", LARGE]), engine }),
        config: { maxBatchSize: 8, responseCache: true },
      });
      const clients = await connectAll(triton);
      const rounds = [0, 0];
      for (const round of rounds) {
        await Promise.all(
          clients.flatMap((client, i) =>
            [0, 1].map(async (k) => {
              const first = 1000 * round + 100 * i + k;
              const input = { ...numbers(LARGE, first), shape: [1, LARGE] };
              const { outputs } = await client.infer({ model: "copy", inputs: [input] });
              expect(firstDifference(outputs[0]!.elements, input.elements)).toBe(-1);
            }),
          ),
        );
      }
    },
  );
});

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

describe("the memory of outputs", () => {
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
      const socket = connectSocket(addresses.http!.port, "127.0.0.1");
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
    await expect
      .poll(() => sent.filter(({ length }) => length === 0).length)
      .toBeGreaterThanOrEqual(REQUESTS);
  });
});
