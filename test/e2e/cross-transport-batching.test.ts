import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { batch } from "@tritonjs/core";
import { describe, expect, it } from "vitest";
import type { Element, NamedTensor } from "../conformance/clients/client.js";
import { flowers, irisModel } from "../support/iris.js";
import { openTriton, serveAndConnect } from "./support/open-triton.js";

/** A batch that is not full waits longer than any test may take: only full ones are executed. */
const UNTIL_FULL = { maxQueueDelayMicroseconds: 600_000_000 };

describe("64 single requests to an ONNX model in a worker, in process, over HTTP and over gRPC at once", () => {
  it("are merged into four executions of 16, and each answer equals the unbatched one", async () => {
    const triton = openTriton();
    const iris = triton.bind({
      modelName: "iris",
      inferFunc: onnxruntime({ model: irisModel }),
      config: { maxBatchSize: 16, batcher: UNTIL_FULL },
    });
    const clients = await serveAndConnect(triton);
    const rows = Array.from({ length: 64 }, (_, i) => flowers[(i * 7) % flowers.length]!);
    const answers = await Promise.all(
      rows.map(async (row, i) => {
        const input = { name: "measurements", datatype: "FP32", shape: [1, 4], elements: row } as const;
        return clients[i % clients.length]!.infer({ model: "iris", inputs: [input] });
      }),
    );
    const statistics = iris.statistics();
    expect(statistics.inferenceCount).toBe(64);
    expect(statistics.executionCount).toBe(4);
    expect(
      statistics.batchStats.map(({ batchSize, computeInfer }) => [batchSize, computeInfer.count]),
    ).toEqual([[16, 4]]);
    const unbatched = await inferOneByOne(rows);
    for (const [i, { outputs }] of answers.entries()) {
      expect(elementsOf(outputs, "species")).toEqual(unbatched[i]!.species);
      // The order of additions inside a matrix product may depend on its size.
      for (const [k, probability] of elementsOf(outputs, "probabilities").entries()) {
        expect(probability).toBeCloseTo(Number(unbatched[i]!.probabilities[k]), 6);
      }
    }
  });

  it("are merged while the instance is busy, without any delay", async () => {
    const triton = openTriton();
    const iris = triton.bind({
      modelName: "iris",
      inferFunc: onnxruntime({ model: irisModel }),
      config: { maxBatchSize: 64 },
    });
    const clients = await serveAndConnect(triton);
    const call = (row: readonly number[]) => ({
      model: "iris",
      inputs: [{ name: "measurements", datatype: "FP32", shape: [1, 4], elements: row } as const],
    });
    await Promise.all(flowers.slice(0, 64).map((row, i) => clients[i % clients.length]!.infer(call(row))));
    const { inferenceCount, executionCount } = iris.statistics();
    expect(inferenceCount).toBe(64);
    expect(executionCount).toBeLessThan(64);
  });
});

it("one batch holds requests of all clients, and each client gets its own rows back", async () => {
  const triton = openTriton();
  const rowsSeen: number[] = [];
  const double = triton.bind({
    modelName: "double",
    inputs: [{ name: "x", dtype: "FP64", shape: [2] }],
    outputs: [{ name: "y", dtype: "FP64", shape: [2] }],
    inferFunc: batch(({ x }) => {
      rowsSeen.push(x.shape[0]!);
      return { y: x.data.map((value) => 2 * value) };
    }),
    config: { maxBatchSize: 15, batcher: UNTIL_FULL },
  });
  const clients = await serveAndConnect(triton);
  const inputs = clients.map((_client, i): NamedTensor => {
    const rows = i + 1;
    const elements = Array.from({ length: 2 * rows }, (_, k) => 100 * i + k);
    return { name: "x", datatype: "FP64", shape: [rows, 2], elements };
  });
  const answers = await Promise.all(
    clients.map((client, i) => client.infer({ model: "double", inputs: [inputs[i]!] })),
  );
  for (const [i, { outputs }] of answers.entries()) {
    const elements = inputs[i]!.elements.map((element) => 2 * Number(element));
    expect(outputs).toEqual([{ ...inputs[i], name: "y", elements }]);
  }
  expect(rowsSeen).toEqual([15]);
  expect(double.statistics()).toMatchObject({ inferenceCount: 15, executionCount: 1 });
});

async function inferOneByOne(rows: readonly (readonly number[])[]) {
  const triton = openTriton();
  const iris = triton.bind({
    modelName: "iris",
    inferFunc: onnxruntime({ model: irisModel }),
    config: { maxBatchSize: 1, batcher: false },
  });
  const answers: { species: Element[]; probabilities: Element[] }[] = [];
  for (const measurements of rows) {
    const { species, probabilities } = await iris.inferSample({ measurements });
    answers.push({
      species: [...(species!.data as Iterable<Element>)],
      probabilities: [...(probabilities!.data as Iterable<Element>)],
    });
  }
  expect(iris.statistics().executionCount).toBe(rows.length);
  return answers;
}

function elementsOf(outputs: readonly NamedTensor[], name: string): readonly Element[] {
  return outputs.find((output) => output.name === name)!.elements;
}
