import type { inference } from "#messages";

type Contents = inference.InferTensorContents.$Properties;
type Integers = readonly (number | bigint)[];

/** Elements of a tensor in typed contents. */
export type ContentsElements =
  | Uint8Array
  | Int8Array
  | Uint16Array
  | Int16Array
  | Uint32Array
  | Int32Array
  | BigInt64Array<ArrayBuffer>
  | BigUint64Array<ArrayBuffer>
  | Float32Array
  | Float64Array
  | Uint8Array[];

/** The error of typed contents that do not fit the tensor. Its message names the tensor. */
export class ContentsError extends Error {
  override readonly name = "ContentsError";
}

/**
 * A field of `InferTensorContents`: the data types that use it, and the conversion of its values to elements of each.
 */
interface ContentsField {
  readonly name: Exclude<keyof Contents, "$unknowns">;
  /** Data type that the error names when the field is used for another data type. */
  readonly datatype: string;
  readonly elements: Readonly<Record<string, (values: never) => ContentsElements>>;
}

/** In the order in which Triton checks them. Values that are too large for an element are truncated. */
const FIELDS: readonly ContentsField[] = [
  {
    name: "boolContents",
    datatype: "BOOL",
    elements: { BOOL: (values: readonly boolean[]) => Uint8Array.from(values, Number) },
  },
  {
    name: "intContents",
    datatype: "INT32",
    elements: {
      INT8: (values: readonly number[]) => Int8Array.from(values),
      INT16: (values: readonly number[]) => Int16Array.from(values),
      INT32: (values: readonly number[]) => Int32Array.from(values),
    },
  },
  {
    name: "int64Contents",
    datatype: "INT64",
    elements: { INT64: (values: Integers) => BigInt64Array.from(values, BigInt) },
  },
  {
    name: "uintContents",
    datatype: "UINT32",
    elements: {
      UINT8: (values: readonly number[]) => Uint8Array.from(values),
      UINT16: (values: readonly number[]) => Uint16Array.from(values),
      UINT32: (values: readonly number[]) => Uint32Array.from(values),
    },
  },
  {
    name: "uint64Contents",
    datatype: "UINT64",
    elements: { UINT64: (values: Integers) => BigUint64Array.from(values, BigInt) },
  },
  {
    name: "fp32Contents",
    datatype: "FP32",
    elements: { FP32: (values: readonly number[]) => Float32Array.from(values) },
  },
  {
    name: "fp64Contents",
    datatype: "FP64",
    elements: { FP64: (values: readonly number[]) => Float64Array.from(values) },
  },
  {
    name: "bytesContents",
    datatype: "BYTES",
    elements: { BYTES: (values: Uint8Array[]) => values },
  },
];

/**
 * Decodes the elements in typed contents; undefined when no field has a value.
 *
 * @param where `input tensor 'X' for model 'M'`, for messages
 * @throws ContentsError when the values are in a field of another data type, or in two fields.
 */
export function typedElements(
  contents: Contents,
  datatype: string,
  where: string,
): ContentsElements | undefined {
  let elements: ContentsElements | undefined;
  for (const field of FIELDS) {
    const values = contents[field.name];
    if (values == null || values.length === 0) continue;
    if (elements !== undefined) {
      throw new ContentsError(
        `unexpected explicit tensor data for ${where}, binary data was already supplied.`,
      );
    }
    const toElements = field.elements[datatype];
    if (toElements === undefined) {
      throw new ContentsError(
        `unexpected explicit tensor data for ${where} of type '${field.datatype}', expected datatype '${datatype}'`,
      );
    }
    elements = toElements(values as never);
  }
  return elements;
}
