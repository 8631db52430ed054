import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type OnnxEngine, onnxruntime } from "@tritonjs/backends/onnxruntime";
import { type DataType, Tensor, Triton, TritonError } from "@tritonjs/core";
import { type Elements, typedArrayFor } from "@tritonjs/protocol";
import type { NamedTensor } from "../clients/client.js";
import { type ConformanceModel, dataSets } from "./conformance-models.js";

/** An output: its bytes in base64. */
export type OutputOfEngine = readonly [
  name: string,
  datatype: DataType,
  shape: readonly number[],
  bytes: string,
];

/** Data sets that `onnxruntime-node` can pass; undefined for a model that has tensors of other types. */
export async function passableSets(model: ConformanceModel): Promise<NamedTensor[][] | undefined> {
  const sets = (await dataSets(model)).map(({ inputs }) => inputs);
  if (sets.flat().includes(undefined) || model.name.includes("BFLOAT16")) return undefined;
  return sets as NamedTensor[][];
}

/** What a model answers to its data sets on an engine: all outputs, or the code of the error. */
export async function answersOf(
  model: ConformanceModel,
  engine: OnnxEngine,
  sets: readonly NamedTensor[][],
): Promise<OutputOfEngine[][] | string> {
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
    const answers: OutputOfEngine[][] = [];
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

function bytesOf(triton: Triton, inputs: ReadonlyMap<string, Tensor>): Promise<OutputOfEngine[]> {
  return new Promise((resolve, reject) => {
    triton.service.model("m", "").infer({ inputs }, (outcome) => {
      if (outcome instanceof Error) reject(outcome);
      else
        resolve(
          [...outcome!.outputs].map(
            ([name, { datatype, shape, bytes }]) =>
              [name, datatype, shape, Buffer.from(bytes).toString("base64")] as const,
          ),
        );
    });
  });
}
