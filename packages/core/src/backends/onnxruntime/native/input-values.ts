import type { Elements, Tensor } from "@tritonjs/protocol";
import type { OrtApi } from "./ort-api.js";

/** An input as ONNX Runtime takes it. */
export interface InputValue {
  /** Address of the `OrtValue`. The caller releases it after the run. */
  readonly value: number;
  /** The array that holds the data; it must stay alive as long as the value. */
  readonly held: Elements;
}

const STRING = 8;

/** Memory that stands for that of an empty array, which has no address. */
const NOTHING = new Uint8Array(8);

/** Dimensions of the value that is being made. ONNX Runtime copies them. */
let dims = new BigInt64Array(16);

/**
 * Makes a value of ONNX Runtime over the memory of a tensor. The elements of `BYTES` are copied into strings.
 *
 * @param elementType ONNX's number of the data type
 * @param shape dimensions inside the model
 * @throws TritonError INTERNAL if ONNX Runtime refuses the tensor
 */
export function inputValue(
  api: OrtApi,
  { elements: held }: Tensor,
  elementType: number,
  shape: readonly number[],
): InputValue {
  if (Array.isArray(held)) return { value: stringValue(api, held, shape), held };
  return { value: valueOver(api, held, elementType, shape), held };
}

/** Makes a value over an array. */
export function valueOver(
  api: OrtApi,
  array: ArrayBufferView,
  elementType: number,
  shape: readonly number[],
): number {
  const { koffi, cpuMemory } = api;
  const data = Number(koffi.address(array.byteLength === 0 ? NOTHING : array));
  const at = dimensions(api, shape);
  return api.read((to) =>
    api.createTensorWithDataAsOrtValue(cpuMemory, data, array.byteLength, at, shape.length, elementType, to),
  );
}

/** Writes the dimensions to `dims`, and returns its address. The memory stays until the next call. */
function dimensions({ koffi }: OrtApi, shape: readonly number[]): number {
  if (shape.length > dims.length) dims = new BigInt64Array(shape.length);
  for (let i = 0; i < shape.length; i++) dims[i] = BigInt(shape[i]!);
  return Number(koffi.address(dims));
}

/** A tensor of strings. A string may contain any bytes. */
function stringValue(api: OrtApi, elements: readonly Uint8Array[], shape: readonly number[]): number {
  const at = dimensions(api, shape);
  const value = api.read((to) => api.createTensorAsOrtValue(api.allocator, at, shape.length, STRING, to));
  try {
    for (const [i, element] of elements.entries()) {
      if (element.byteLength === 0) continue;
      const buffer = api.read((to) =>
        api.getResizedStringTensorElementBuffer(value, i, element.byteLength, to),
      );
      api.copy(buffer, Number(api.koffi.address(element)), element.byteLength);
    }
    return value;
  } catch (error) {
    api.releaseValue(value);
    throw error;
  }
}
