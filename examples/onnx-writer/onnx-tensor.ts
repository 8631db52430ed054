/** ONNX tensor element types with their codes in `TensorProto.DataType`. */
export const onnxElementTypes = {
  FLOAT: 1,
  UINT8: 2,
  INT8: 3,
  UINT16: 4,
  INT16: 5,
  INT32: 6,
  INT64: 7,
  STRING: 8,
  BOOL: 9,
  FLOAT16: 10,
  DOUBLE: 11,
  UINT32: 12,
  UINT64: 13,
  BFLOAT16: 16,
} as const;

/** Name of an ONNX tensor element type, as ONNX spells it. */
export type OnnxElementType = keyof typeof onnxElementTypes;

/** Elements of a constant tensor in row-major order. */
export type OnnxTensorData =
  | Float32Array
  | Float64Array
  | Int8Array
  | Int16Array
  | Int32Array
  | BigInt64Array
  | Uint8Array
  | Uint16Array
  | Uint32Array
  | BigUint64Array
  | readonly string[];

/** A constant tensor: an initializer of a graph or the value of an attribute. */
export interface OnnxTensor {
  readonly name: string;
  /** Number of elements per axis; `[]` is a scalar. */
  readonly dims: readonly number[];
  readonly data: OnnxTensorData;
  /**
   * Element type, if the kind of array does not determine it: `BOOL` in a `Uint8Array` (0 or 1), `FLOAT16` or
   * `BFLOAT16` in a `Uint16Array` (bit patterns).
   */
  readonly elemType?: OnnxElementType;
  /**
   * External file that holds the bytes: its path relative to the model, and the offset of the bytes in it. The caller
   * writes that file.
   */
  readonly external?: { readonly location: string; readonly offset?: number };
}

/** Element types per kind of array, the default first. */
const elementTypesByArray: Readonly<Record<string, readonly OnnxElementType[]>> = {
  Float32Array: ["FLOAT"],
  Float64Array: ["DOUBLE"],
  Int8Array: ["INT8"],
  Int16Array: ["INT16"],
  Int32Array: ["INT32"],
  BigInt64Array: ["INT64"],
  Uint8Array: ["UINT8", "BOOL"],
  Uint16Array: ["UINT16", "FLOAT16", "BFLOAT16"],
  Uint32Array: ["UINT32"],
  BigUint64Array: ["UINT64"],
  Array: ["STRING"],
};

const utf8 = new TextEncoder();

/**
 * The `onnx.TensorProto` message of a constant tensor. Numbers are stored as raw bytes. ONNX requires little-endian
 * order, which is the order of every platform that Node supports with ONNX Runtime.
 *
 * @throws Error if the element count does not match `dims`, or the array cannot hold `elemType`.
 */
export function tensorMessage(tensor: OnnxTensor): Record<string, unknown> {
  const { name, dims, data } = tensor;
  const kind = isStrings(data) ? "Array" : data[Symbol.toStringTag];
  const allowed = elementTypesByArray[kind] ?? [];
  const elemType = tensor.elemType ?? allowed[0];
  if (elemType === undefined || !allowed.includes(elemType)) {
    throw new Error(`tensor "${name}": a ${kind} cannot hold ${elemType ?? "ONNX elements"}`);
  }
  const count = dims.reduce((product, dim) => product * dim, 1);
  if (data.length !== count) {
    throw new Error(`tensor "${name}": shape [${dims}] has ${count} elements, the data has ${data.length}`);
  }
  const message = { name, dims, dataType: onnxElementTypes[elemType] };
  if (isStrings(data)) return { ...message, stringData: data.map((text) => utf8.encode(text)) };
  if (tensor.external === undefined) {
    return { ...message, rawData: new Uint8Array(data.buffer, data.byteOffset, data.byteLength) };
  }
  const { location, offset = 0 } = tensor.external;
  const entries = { location, offset, length: data.byteLength };
  const externalData = Object.entries(entries).map(([key, value]) => ({ key, value: String(value) }));
  return { ...message, externalData, dataLocation: "EXTERNAL" };
}

function isStrings(data: OnnxTensorData): data is readonly string[] {
  return Array.isArray(data);
}
