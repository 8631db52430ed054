import { BFloat16Bits, type DataType, Float16Bits, type Triton, TritonError } from "@tritonjs/core";
import { DATA_TYPES, type Elements, isHalfArray } from "@tritonjs/protocol";
import { serviceOf } from "@tritonjs/server";
import ndarray, { type NdArray } from "ndarray";
import {
  type Answer,
  type Client,
  type Element,
  type InferCall,
  type NamedTensor,
  Refusal,
} from "./client.js";
import { plainBytes } from "./wire.js";

const arrays = {
  BOOL: Uint8Array,
  UINT8: Uint8Array,
  UINT16: Uint16Array,
  UINT32: Uint32Array,
  UINT64: BigUint64Array,
  INT8: Int8Array,
  INT16: Int16Array,
  INT32: Int32Array,
  INT64: BigInt64Array,
  FP16: Float16Bits,
  BF16: BFloat16Bits,
  FP32: Float32Array,
  FP64: Float64Array,
} as const;

/** Calls `triton.infer`: no network, ndarrays in and out. */
export function inProcessClient(triton: Triton): Client {
  return {
    way: "in process",
    async infer(call) {
      try {
        return await infer(triton, call);
      } catch (error) {
        throw TritonError.is(error) ? new Refusal(error.code, error.message) : error;
      }
    },
    close() {},
  };
}

async function infer(triton: Triton, call: InferCall): Promise<Answer> {
  if (call.outputs !== undefined) throw new Error("outputs cannot be chosen in process");
  const inputs = Object.fromEntries(call.inputs.map((input) => [input.name, toNdArray(input)]));
  const { version: modelVersion, id, parameters, signal } = call;
  const declared = outputsOf(triton, call.model);
  const outputs = await triton.infer(call.model, inputs, { modelVersion, id, parameters, signal });
  return {
    outputs: Object.entries(outputs).map(([name, array]) => ({
      name,
      datatype: toDataType(declared.find((output) => output.name === name)?.datatype),
      shape: array.shape,
      elements: elementsOf(array.data as Elements),
    })),
  };
}

/** Outputs of a model with their data types; none for an unknown model. */
function outputsOf(triton: Triton, model: string) {
  try {
    return serviceOf(triton).modelMetadata(model, "").outputs;
  } catch {
    return [];
  }
}

function toNdArray({ datatype, shape, elements }: NamedTensor): NdArray {
  if (datatype === "BYTES") return ndarray([...elements] as number[], [...shape]);
  const Kind = arrays[datatype] as unknown as new (elements: readonly Element[]) => Float32Array;
  return ndarray(new Kind(elements), [...shape]);
}

function elementsOf(given: Elements): Element[] {
  const data: ArrayLike<Element> = isHalfArray(given)
    ? new Uint16Array(given.buffer, given.byteOffset, given.length)
    : given;
  return Array.from(data, (one) => (one instanceof Uint8Array ? plainBytes(one) : one));
}

function toDataType(name: string | undefined): DataType {
  const found = DATA_TYPES.find((datatype) => datatype === name);
  if (found === undefined) throw new Error(`no data type '${name}'`);
  return found;
}
