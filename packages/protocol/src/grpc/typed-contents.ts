import type { inference } from "#messages";

type Contents = inference.InferTensorContents.$Properties;

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

/*
 * The reader decodes a packed field as a typed array. If it has the type of the elements, its values are not copied.
 * Values in several fields are lists.
 */

const numbersAs =
  <T extends ContentsElements>(type: new (values: ArrayLike<number>) => T) =>
  (values: ArrayLike<number>): T =>
    values instanceof type ? values : new type(values);

const bigintsAs =
  <T extends ContentsElements>(type: {
    new (length: number): T;
    from(values: ArrayLike<number | bigint>, toElement: (value: number | bigint) => bigint): T;
  }) =>
  (values: ArrayLike<number | bigint>): T =>
    values instanceof type ? values : type.from(values, BigInt);

/** In the order in which Triton checks them. Values that are too large for an element are truncated. */
const FIELDS: readonly ContentsField[] = [
  {
    name: "boolContents",
    datatype: "BOOL",
    elements: { BOOL: numbersAs(Uint8Array) },
  },
  {
    name: "intContents",
    datatype: "INT32",
    elements: {
      INT8: numbersAs(Int8Array),
      INT16: numbersAs(Int16Array),
      INT32: numbersAs(Int32Array),
    },
  },
  {
    name: "int64Contents",
    datatype: "INT64",
    elements: { INT64: bigintsAs(BigInt64Array) },
  },
  {
    name: "uintContents",
    datatype: "UINT32",
    elements: {
      UINT8: numbersAs(Uint8Array),
      UINT16: numbersAs(Uint16Array),
      UINT32: numbersAs(Uint32Array),
    },
  },
  {
    name: "uint64Contents",
    datatype: "UINT64",
    elements: { UINT64: bigintsAs(BigUint64Array) },
  },
  {
    name: "fp32Contents",
    datatype: "FP32",
    elements: { FP32: numbersAs(Float32Array) },
  },
  {
    name: "fp64Contents",
    datatype: "FP64",
    elements: { FP64: numbersAs(Float64Array) },
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
