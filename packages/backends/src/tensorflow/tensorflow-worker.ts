import type { Tensor as TfTensor } from "@tensorflow/tfjs";
import type { ModelDescription, WorkerModel } from "@tritonjs/core/backend";
import type { InstanceInfo, Tensors } from "@tritonjs/core/internal";
import {
  bfloat16ToFloat32,
  type DataType,
  type Elements,
  float16ToFloat32,
  float32ToBfloat16,
  float32ToFloat16,
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

/** The type of TensorFlow.js for each data type. TensorFlow.js has only four types. */
const TF_TYPES: Readonly<Record<DataType, "float32" | "int32" | "bool" | "string">> = {
  BOOL: "bool",
  UINT8: "int32",
  UINT16: "int32",
  UINT32: "int32",
  UINT64: "int32",
  INT8: "int32",
  INT16: "int32",
  INT32: "int32",
  INT64: "int32",
  FP16: "float32",
  BF16: "float32",
  FP32: "float32",
  FP64: "float32",
  BYTES: "string",
};

/**
 * Converts a tensor for TensorFlow.js. Integers of 64 bits become 32-bit integers, and doubles become floats, because
 * TensorFlow.js has no others.
 *
 * @throws TritonError INVALID_ARG for an integer that does not fit
 */
function toTf(tf: Tf, name: string, { datatype, shape, elements }: Tensor): TfTensor {
  const dtype = TF_TYPES[datatype];
  return tf.tensor(valuesOf(name, datatype, elements) as Float32Array, [...shape], dtype);
}

function valuesOf(name: string, datatype: DataType, elements: Elements): Elements {
  switch (datatype) {
    case "FP16":
      return float16ToFloat32(elements as Uint16Array);
    case "BF16":
      return bfloat16ToFloat32(elements as Uint16Array);
    case "FP64":
      return Float32Array.from(elements as Float64Array);
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
  const wanted = TF_TYPES[datatype];
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
  switch (datatype) {
    case "FP32":
    case "INT32":
    case "BOOL":
      return data;
    case "FP16":
      return float32ToFloat16(data);
    case "BF16":
      return float32ToBfloat16(data);
    case "INT64":
      return BigInt64Array.from(data, BigInt);
    case "UINT64":
      return BigUint64Array.from(data, BigInt);
    default:
      return new (typedArrayFor(datatype as Exclude<DataType, "BYTES">))(data);
  }
}
