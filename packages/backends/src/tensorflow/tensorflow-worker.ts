import type { Tensor as TfTensor } from "@tensorflow/tfjs";
import type { ModelDescription, WorkerModel } from "@tritonjs/core/backend";
import type { InstanceInfo, Tensors } from "@tritonjs/core/internal";
import {
  type DataType,
  type Elements,
  type FixedDataType,
  floatReader,
  floatWriter,
  fromConfigDataType,
  type ModelConfig,
  Tensor,
  TritonError,
  typedArrayFor,
} from "@tritonjs/protocol";
import { type OpenTensorFlowModel, openModel, type TensorFlowModelLocation } from "./open-model.js";
import { openRuntime, type TensorflowRuntime, type Tf } from "./tensorflow-runtime.js";

/** The data that a worker needs to open its model. It survives structured cloning. */
export interface TensorflowData extends TensorFlowModelLocation {
  readonly runtime: TensorflowRuntime;
}

/** Entry of workers that run a TensorFlow model, one model in each worker. */
export async function load(data: unknown, { modelConfig, device }: InstanceInfo): Promise<WorkerModel> {
  const { runtime, ...location } = data as TensorflowData;
  const tf = await openRuntime(runtime, device.kind === "KIND_GPU" ? device.id : undefined);
  const model = await openModel(tf, location);
  const outputs = dataTypes(modelConfig);
  return {
    // A backend of TensorFlow.js may return its own memory, for example that of a constant.
    ownsOutputs: false,
    details: {
      runtime,
      description: JSON.stringify(model.description),
    },
    execute: async ({ inputs }) => ({ merged: await run(tf, model, inputs, outputs) }),
    close: async () => model.dispose(),
  };
}

/** Describes the model for a synchronous `bind`. */
export async function describe(data: unknown): Promise<ModelDescription> {
  const { runtime, ...location } = data as TensorflowData;
  return (await openModel(await openRuntime(runtime, undefined), location)).description;
}

function dataTypes({ output }: ModelConfig): ReadonlyMap<string, DataType> {
  return new Map(output.map(({ name, dataType }) => [name, fromConfigDataType(dataType) ?? "FP32"]));
}

async function run(
  tf: Tf,
  model: OpenTensorFlowModel,
  inputs: Tensors,
  types: ReadonlyMap<string, DataType>,
): Promise<Tensors> {
  const held: TfTensor[] = [];
  try {
    const feeds: Record<string, TfTensor> = {};
    for (const [name, tensor] of inputs) {
      feeds[name] = toTf(tf, name, tensor);
      held.push(feeds[name]);
    }
    const results = await model.run(feeds, [...types.keys()]);
    held.push(...results.values());
    const outputs = new Map<string, Tensor>();
    for (const [name, datatype] of types) {
      const result = results.get(name);
      if (result !== undefined) outputs.set(name, await fromTf(name, datatype, result));
    }
    return outputs;
  } catch (error) {
    if (TritonError.is(error)) throw error;
    throw new TritonError("INTERNAL", `TensorFlow: ${TritonError.from(error).message.split("\n")[0]}`, {
      cause: error,
    });
  } finally {
    tf.dispose(held);
  }
}

/** The type of TensorFlow.js for a data type. TensorFlow.js has only four types. */
function tfTypeOf(datatype: DataType): "float32" | "int32" | "bool" | "string" {
  if (datatype === "BYTES") return "string";
  if (datatype === "BOOL") return "bool";
  return floatReader(datatype) === undefined ? "int32" : "float32";
}

/**
 * Converts a tensor for TensorFlow.js. Integers of 64 bits become 32-bit integers, and doubles become floats, because
 * TensorFlow.js has no others.
 *
 * @throws TritonError INVALID_ARG for an integer that does not fit
 */
function toTf(tf: Tf, name: string, { datatype, shape, elements }: Tensor): TfTensor {
  const dtype = tfTypeOf(datatype);
  return tf.tensor(valuesOf(name, datatype, elements) as Float32Array, [...shape], dtype);
}

function valuesOf(name: string, datatype: DataType, elements: Elements): Elements {
  const toNumber = floatReader(datatype);
  if (toNumber !== undefined) {
    return elements instanceof Float32Array ? elements : Float32Array.from(elements as Uint16Array, toNumber);
  }
  switch (datatype) {
    case "UINT8":
    case "INT8":
    case "UINT16":
    case "INT16":
      return Int32Array.from(elements as Int16Array);
    case "UINT32":
    case "INT64":
    case "UINT64":
      return Int32Array.from(elements as Uint32Array, (value) => narrowed(name, value));
    default:
      return elements;
  }
}

function narrowed(name: string, value: number | bigint): number {
  const number = Number(value);
  if (number === (number | 0)) return number;
  throw new TritonError(
    "INVALID_ARG",
    `input '${name}': expected integers of 32 bits, which TensorFlow.js has, got ${value}`,
    { reason: "INVALID_INPUT" },
  );
}

/**
 * Converts an output to a tensor of the data type that the model's configuration declares. Resolves when the output is
 * computed.
 *
 * @throws TritonError INTERNAL for an output of another kind
 */
async function fromTf(name: string, datatype: DataType, output: TfTensor): Promise<Tensor> {
  const wanted = tfTypeOf(datatype);
  if (wanted !== output.dtype) {
    throw new TritonError(
      "INTERNAL",
      `output '${name}': expected ${datatype}, got ${output.dtype} from TensorFlow.js`,
      { reason: "INVALID_OUTPUT" },
    );
  }
  if (wanted === "string") {
    const bytes = (await output.bytes()) as Uint8Array[];
    return Tensor.fromElements("BYTES", [...output.shape], bytes);
  }
  const data = (await output.data()) as Float32Array | Int32Array | Uint8Array;
  return Tensor.fromElements(datatype, [...output.shape], elementsOf(datatype, data));
}

function elementsOf(datatype: DataType, data: Float32Array | Int32Array | Uint8Array): Elements {
  const array = typedArrayFor(datatype as FixedDataType);
  if (data instanceof array) return data;
  if (datatype === "INT64") return BigInt64Array.from(data, BigInt);
  if (datatype === "UINT64") return BigUint64Array.from(data, BigInt);
  const fromNumber = floatWriter(datatype);
  return new array(
    fromNumber === undefined ? data : (Array.from(data, fromNumber) as unknown as Float64Array),
  );
}
