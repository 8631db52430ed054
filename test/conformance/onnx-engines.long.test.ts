import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type OnnxEngine, onnxruntime } from "@tritonjs/backends/onnxruntime";
import { Tensor, Triton, TritonError } from "@tritonjs/core";
import { type Elements, typedArrayFor } from "@tritonjs/protocol";
import { expect, it } from "vitest";
import { sendRequest } from "../support/send-request.js";
import type { NamedTensor } from "./clients/client.js";
import {
  type ConformanceModel,
  conformanceModels,
  dataSets,
  hasConformanceData,
} from "./onnx-data/conformance-models.js";

const skipped = hasConformanceData ? "" : " (skipped: Debian's package libonnx-testdata is not installed)";

/** What a model answers to its data sets on an engine: bytes of all outputs, or the error. */
async function answersOf(model: ConformanceModel, engine: OnnxEngine, sets: readonly NamedTensor[][]) {
  const triton = new Triton({ logger: { error() {}, warn() {}, info() {}, debug() {} } });
  try {
    const file = await readFile(join(model.directory, "model.onnx"));
    const handle = triton.bind({
      modelName: "m",
      inferFunc: onnxruntime({ model: file, engine, intraOpNumThreads: 1 }),
      config: { maxBatchSize: 0 },
    });
    await handle.ready();
    const names = handle.metadata().inputs.map(({ name }) => name);
    const answers: unknown[] = [];
    for (const set of sets) {
      const inputs = new Map(
        set.map(({ name, datatype, shape, elements }, i) => {
          const typed = datatype === "BYTES" ? elements : new (typedArrayFor(datatype))(elements as never);
          return [
            names.includes(name) ? name : names[i]!,
            Tensor.fromElements(datatype, shape, typed as Elements),
          ];
        }),
      );
      answers.push(await bytesOf(triton, inputs));
    }
    return answers;
  } catch (error) {
    return TritonError.from(error).code;
  } finally {
    await triton.close();
  }
}

function bytesOf(triton: Triton, inputs: ReadonlyMap<string, Tensor>): Promise<unknown> {
  return new Promise((resolve, reject) => {
    sendRequest(triton.service.model("m", ""), { inputs }, (outcome) => {
      if (outcome instanceof Error) reject(outcome);
      else
        resolve(
          [...outcome!.outputs].map(([name, { datatype, shape, bytes }]) => [
            name,
            datatype,
            shape,
            Buffer.from(bytes).toString("base64"),
          ]),
        );
    });
  });
}

it.skipIf(!hasConformanceData)(
  `both engines answer ONNX's conformance data alike, bit for bit${skipped}`,
  async () => {
    const different: unknown[] = [];
    let compared = 0;
    for (const model of conformanceModels()) {
      const sets = (await dataSets(model)).map(({ inputs }) => inputs);
      // onnxruntime-node cannot pass tensors of bfloat16.
      if (sets.flat().includes(undefined) || model.name.includes("BFLOAT16")) continue;
      const [worker, native] = await Promise.all(
        (["worker", "native"] as const).map((engine) => answersOf(model, engine, sets as NamedTensor[][])),
      );
      if (JSON.stringify(worker) === JSON.stringify(native)) compared += Array.isArray(worker) ? 1 : 0;
      else different.push({ model: model.name, worker, native });
    }
    expect(different).toEqual([]);
    expect(compared).toBeGreaterThan(900);
  },
  1_200_000,
);
