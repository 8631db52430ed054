import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { InferenceServerClient } from "@tritonjs/client/http";
import { sample } from "@tritonjs/core";
import type { Tensor, TensorSpec } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import type { Client, NamedTensor, Way } from "../conformance/clients/client.js";
import { keepingBackend } from "../support/answering-backend.js";
import { firstDifference } from "../support/first-difference.js";
import { identityOnnx } from "../support/onnx-models.js";
import { connectAll } from "./support/connect-all.js";
import { openTriton } from "./support/open-triton.js";

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
