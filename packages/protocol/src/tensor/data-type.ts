/** A data type of the v2 protocol. `BYTES` is Triton's `TYPE_STRING`. */
export type DataType =
  | "BOOL"
  | "UINT8"
  | "UINT16"
  | "UINT32"
  | "UINT64"
  | "INT8"
  | "INT16"
  | "INT32"
  | "INT64"
  | "FP16"
  | "BF16"
  | "FP32"
  | "FP64"
  | "BYTES";

/**
 * The JavaScript container for the elements of a tensor of data type `D`. `BOOL` is one byte of 0 or 1. `FP16` and
 * `BF16` are their 16 raw bits (see `float32ToFloat16` and its siblings). `BYTES` is one byte array per element.
 */
export type ElementsOf<D extends DataType> = D extends keyof FixedElements ? FixedElements[D] : Uint8Array[];

interface FixedElements {
  BOOL: Uint8Array;
  UINT8: Uint8Array;
  UINT16: Uint16Array;
  UINT32: Uint32Array;
  UINT64: BigUint64Array<ArrayBuffer>;
  INT8: Int8Array;
  INT16: Int16Array;
  INT32: Int32Array;
  INT64: BigInt64Array<ArrayBuffer>;
  FP16: Uint16Array;
  BF16: Uint16Array;
  FP32: Float32Array;
  FP64: Float64Array;
}

/** Any array that can hold a tensor of a fixed-size data type. */
export type TypedArray = FixedElements[keyof FixedElements];

/** Any container of tensor elements. */
export type Elements = TypedArray | Uint8Array[];

/** Constructor of a typed array, reduced to the members that the tensor code uses. */
export interface TypedArrayConstructor {
  new (length: number): TypedArray;
  new (elements: TypedArray): TypedArray;
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): TypedArray;
  readonly BYTES_PER_ELEMENT: number;
  readonly name: string;
}

const constructors: Record<Exclude<DataType, "BYTES">, TypedArrayConstructor> = {
  BOOL: Uint8Array,
  UINT8: Uint8Array,
  UINT16: Uint16Array,
  UINT32: Uint32Array,
  UINT64: BigUint64Array,
  INT8: Int8Array,
  INT16: Int16Array,
  INT32: Int32Array,
  INT64: BigInt64Array,
  FP16: Uint16Array,
  BF16: Uint16Array,
  FP32: Float32Array,
  FP64: Float64Array,
};

/** All data types, in the order of Triton's documentation. */
export const DATA_TYPES: readonly DataType[] = [...(Object.keys(constructors) as DataType[]), "BYTES"];

/** True if `value` names a data type of the v2 protocol. */
export function isDataType(value: unknown): value is DataType {
  return value === "BYTES" || (typeof value === "string" && Object.hasOwn(constructors, value));
}

/** Size of one element in bytes; 0 for `BYTES`, whose elements differ in size. */
export function elementByteSize(datatype: DataType): number {
  return datatype === "BYTES" ? 0 : constructors[datatype].BYTES_PER_ELEMENT;
}

/** The typed array that holds elements of `datatype`. */
export function typedArrayFor(datatype: Exclude<DataType, "BYTES">): TypedArrayConstructor {
  return constructors[datatype];
}

/** Triton's name of a data type in a model configuration, such as `TYPE_FP32`. `BYTES` is `TYPE_STRING`. */
export function toConfigDataType(datatype: DataType): string {
  return datatype === "BYTES" ? "TYPE_STRING" : `TYPE_${datatype}`;
}

const byConfigName = new Map<string, DataType>();
for (const datatype of DATA_TYPES) byConfigName.set(toConfigDataType(datatype), datatype);

/** The data type for a name of the model configuration. `undefined` for an unknown one. */
export function fromConfigDataType(name: string): DataType | undefined {
  const known = byConfigName.get(name);
  if (known !== undefined) return known;
  const bare = name === "TYPE_STRING" ? "BYTES" : name.replace(/^TYPE_/, "");
  return name !== "TYPE_BYTES" && isDataType(bare) ? bare : undefined;
}
