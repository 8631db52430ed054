import {
  type DataType,
  elementCount,
  errorFor,
  fromOnnxType,
  Tensor,
  toOnnxType,
  typedArrayFor,
} from "@tritonjs/protocol";
import type { NativeTensor } from "./native-session.js";
import { typeAndShape } from "./native-session.js";
import type { OrtApi } from "./ort-c-api.js";

const STRING = 8;

/** Memory that stands for that of an empty array, which has no address. */
const NOTHING = new Uint8Array(8);

/** Dimensions of the value that is being made. ONNX Runtime copies them. */
let dims = new BigInt64Array(16);

/**
 * Makes a value of ONNX Runtime over the memory of an array, which must stay alive as long as the value.
 *
 * @param elementType ONNX's number of the data type
 * @param shape dimensions inside the model
 * @returns the address of the `OrtValue`, which the caller releases after the run
 * @throws TritonError INTERNAL if ONNX Runtime refuses the tensor
 */
export function valueOver(
  api: OrtApi,
  array: ArrayBufferView,
  elementType: number,
  shape: readonly number[],
): number {
  const data = Number(api.koffi.address(array.byteLength === 0 ? NOTHING : array));
  return valueAt(api, api.cpuMemory, data, array.byteLength, elementType, shape);
}

/**
 * Makes a value over memory that is not JavaScript's.
 *
 * @param info description of the memory
 */
export function valueAt(
  api: OrtApi,
  info: number,
  data: number,
  byteSize: number,
  elementType: number,
  shape: readonly number[],
): number {
  const at = dimensions(api, shape);
  return api.read((to) =>
    api.createTensorWithDataAsOrtValue(info, data, byteSize, at, shape.length, elementType, to),
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

/**
 * Copies an output that ONNX Runtime has allocated, because its shape was not known before the run.
 *
 * @param value address of the output, which the caller releases
 * @throws TritonError UNSUPPORTED for types that the protocol does not have
 */
export function copyOutput(api: OrtApi, name: string, value: number): Tensor {
  const info = api.read((to) => api.getTensorTypeAndShape(value, to));
  try {
    const { elementType, dims } = typeAndShape(api, info);
    const datatype = outputDataType(name, elementType);
    if (datatype === "BYTES")
      return Tensor.fromElements("BYTES", dims, strings(api, value, elementCount(dims)));
    const elements = new (typedArrayFor(datatype))(elementCount(dims));
    if (elements.byteLength > 0) {
      const from = api.read((to) => api.getTensorMutableData(value, to));
      api.copy(Number(api.koffi.address(elements)), from, elements.byteLength);
    }
    return Tensor.fromElements(datatype, dims, elements);
  } finally {
    api.releaseTensorTypeAndShapeInfo(info);
  }
}

/** @throws TritonError UNSUPPORTED for types that the protocol does not have */
export function outputDataType(name: string, elementType: number): DataType {
  const datatype = fromOnnxType(elementType);
  if (datatype !== undefined) return datatype;
  const text = `output '${name}' has ONNX type ${elementType}, which the protocol cannot carry`;
  throw errorFor("MODEL_NOT_SUPPORTED", text);
}

function strings(api: OrtApi, value: number, count: number): Uint8Array[] {
  if (count === 0) return [];
  const length = api.read((to) => api.getStringTensorDataLength(value, to));
  // At least a byte, because an empty array has no address.
  const bytes = new Uint8Array(length + 1);
  const offsets = new BigUint64Array(count);
  const [to, at] = [bytes, offsets].map((array) => Number(api.koffi.address(array))) as [number, number];
  api.check(api.getStringTensorContent(value, to, length, at, count));
  return Array.from(offsets, (start, i) =>
    bytes.subarray(Number(start), i + 1 < count ? Number(offsets[i + 1]) : length),
  );
}

/** A value of ONNX Runtime over a tensor of the CPU, and the memory under it, which must stay alive as long. */
export function tensorValue(api: OrtApi, tensor: Tensor, shape: readonly number[]): number {
  const { elements } = tensor;
  return Array.isArray(elements)
    ? stringValue(api, elements, shape)
    : valueOver(api, elements, toOnnxType(tensor.datatype), shape);
}

/**
 * Predicts the shapes of outputs from those of inputs: of fixed dimensions, and of dimensions whose name an input has
 * too. ONNX Runtime then writes such outputs to memory of ours, which need not be copied.
 */
export class ShapePrediction {
  readonly #sources = new Map<string, { readonly input: string; readonly axis: number }>();

  constructor(inputs: readonly NativeTensor[]) {
    for (const { name: input, dimNames } of inputs) {
      for (const [axis, name] of dimNames.entries()) {
        if (name !== "" && !this.#sources.has(name)) this.#sources.set(name, { input, axis });
      }
    }
  }

  /**
   * The shape of an output, undefined when it cannot be predicted.
   *
   * @param shapeOf the shape of an input in this run
   */
  predict(
    { dims, dimNames }: Pick<NativeTensor, "dims" | "dimNames">,
    shapeOf: (input: string) => readonly number[] | undefined,
  ): readonly number[] | undefined {
    // No dimensions mean a scalar, or an unknown rank.
    if (dims.length === 0) return undefined;
    const shape: number[] = [];
    for (const [axis, size] of dims.entries()) {
      const source = size >= 0 ? undefined : this.#sources.get(dimNames[axis]!);
      const known = size >= 0 ? size : source && shapeOf(source.input)?.[source.axis];
      if (known === undefined) return undefined;
      shape.push(known);
    }
    return shape;
  }
}
