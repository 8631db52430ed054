import { TritonError } from "../errors/triton-error.js";
import { type DataType, isDataType } from "./data-type.js";
import { unknownDataTypeText } from "./data-type-names.js";
import { type PlainObject, type TensorValue, tensorFromValue } from "./from-value.js";
import { isNdArray } from "./nd-array.js";
import { elementCount, type Shape, shapeToString } from "./shape.js";
import { Tensor } from "./tensor.js";

/** An input with its data type and shape. */
export interface TensorInput {
  /** Data type of the input. @default the data type of the typed array; nested arrays of numbers have none */
  readonly datatype?: DataType;
  /**
   * Shape of the input.
   *
   * @default that of the ndarray or of the nested arrays; a typed array has one dimension, a list of them has two
   */
  readonly shape?: Shape;
  readonly data: TensorValue<DataType>;
}

const typedArrays: readonly (readonly [new () => object, DataType])[] = [
  [Float32Array, "FP32"],
  [Float64Array, "FP64"],
  [Int8Array, "INT8"],
  [Int16Array, "INT16"],
  [Int32Array, "INT32"],
  [BigInt64Array, "INT64"],
  [Uint8Array, "UINT8"],
  [Uint8ClampedArray, "UINT8"],
  [Uint16Array, "UINT16"],
  [Uint32Array, "UINT32"],
  [BigUint64Array, "UINT64"],
];

/** Data alone. A plain object would describe the input: as data, it has to be in an array or in a description. */
export type BareData = Exclude<TensorValue<DataType>, PlainObject>;

/**
 * Converts an input in any form to a tensor.
 *
 * @throws TritonError INVALID_ARG that names the input, if its data type is not known or its data does not fit.
 */
export function inputTensor(name: string, input: TensorInput | Tensor | BareData): Tensor {
  if (input instanceof Tensor) return input;
  const described = isDescribed(input) ? input : { data: input };
  const what = `input '${name}'`;
  const datatype = described.datatype ?? datatypeOf(described.data);
  if (datatype === undefined) throw invalid(`${what} has no datatype`);
  if (!isDataType(datatype)) throw invalid(`${what}: ${unknownDataTypeText(datatype)}`);
  const unknownShape = datatype !== "BYTES" && isRows(described.data) ? [-1, -1] : [-1];
  const tensor = tensorFromValue(described.data, { what, datatype, shape: described.shape ?? unknownShape });
  return withShape(what, tensor, described.shape);
}

/** True for an input with its data type and shape, as opposed to bare data. */
export function isDescribed(input: object | string | number | bigint | boolean): input is TensorInput {
  return (
    typeof input === "object" &&
    "data" in input &&
    !isNdArray(input) &&
    !ArrayBuffer.isView(input) &&
    !Array.isArray(input)
  );
}

function withShape(what: string, tensor: Tensor, shape: Shape | undefined): Tensor {
  if (shape === undefined || shape.includes(-1)) return tensor;
  if (elementCount(shape) === elementCount(tensor.shape)) return tensor.reshaped(shape);
  throw invalid(
    `${what}: expected data for shape ${shapeToString(shape)}, got shape ${shapeToString(tensor.shape)}`,
  );
}

/** The data type that follows from a value. Numbers could have any. */
function datatypeOf(value: unknown): DataType | undefined {
  if (isNdArray(value)) return datatypeOf(value.data);
  if (ArrayBuffer.isView(value)) return typedArrays.find(([type]) => value instanceof type)?.[1];
  // A list of byte arrays holds elements of BYTES.
  if (isRows(value) && !(value[0] instanceof Uint8Array)) return datatypeOf(value[0]);
  let leaf = value;
  while (Array.isArray(leaf)) leaf = leaf[0];
  if (leaf !== value && typeof leaf === "object" && leaf !== null) return "BYTES";
  if (typeof leaf === "boolean") return "BOOL";
  if (typeof leaf === "bigint") return "INT64";
  return typeof leaf === "string" || leaf instanceof Uint8Array ? "BYTES" : undefined;
}

function isRows(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && ArrayBuffer.isView(value[0]);
}

function invalid(message: string): TritonError {
  return new TritonError("INVALID_ARG", message, { reason: "INVALID_INPUT" });
}
