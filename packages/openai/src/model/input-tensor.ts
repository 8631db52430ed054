import { type DataType, fromConfigDataType, type ModelInput, Tensor } from "@tritonjs/protocol";

/** An input of a model as requests give it: its shape includes the batch axis. */
export interface InputSlot {
  readonly name: string;
  readonly datatype: DataType;
  /** -1 for an open dimension. */
  readonly shape: readonly number[];
  readonly optional: boolean;
}

/** A value of one element, or of several in a row. */
export type SlotValue = string | number | boolean | readonly (string | number)[];

/** Reads an input of a configuration; undefined for a data type that requests cannot have. */
export function inputSlot(
  { name, dataType, dims, optional }: ModelInput,
  maxBatchSize: number,
): InputSlot | undefined {
  const datatype = fromConfigDataType(dataType);
  if (datatype === undefined) return undefined;
  return { name, datatype, optional, shape: [...(maxBatchSize > 0 ? [1] : []), ...dims] };
}

/** Makes a tensor of a value; undefined if the input cannot hold it. */
export function tensorOf({ datatype, shape }: InputSlot, value: SlotValue): Tensor | undefined {
  const values = Array.isArray(value) ? (value as readonly (string | number)[]) : [value as string | number];
  const fitted = fitShape(shape, values.length);
  const elements = fitted && elementsOf(datatype, values);
  return elements && Tensor.fromElements(datatype, fitted, elements);
}

/** The shape for `count` elements: the innermost open dimension takes those that the fixed ones leave. */
function fitShape(shape: readonly number[], count: number): number[] | undefined {
  const fixed = shape.reduce((product, size) => (size === -1 ? product : product * size), 1);
  const open = shape.lastIndexOf(-1);
  if (open < 0 ? count !== fixed : count % fixed !== 0) return undefined;
  return shape.map((size, axis) => (size !== -1 ? size : axis === open ? count / fixed : 1));
}

function elementsOf(datatype: DataType, values: readonly (string | number | boolean)[]) {
  if (datatype === "BYTES") {
    return values.every((value) => typeof value === "string")
      ? values.map((value) => Buffer.from(value as string))
      : undefined;
  }
  if (values.some((value) => typeof value === "string")) return undefined;
  const numbers = values.map(Number);
  switch (datatype) {
    case "BOOL":
      return Uint8Array.from(numbers, (value) => (value === 0 ? 0 : 1));
    case "INT32":
      return Int32Array.from(numbers);
    case "UINT32":
      return Uint32Array.from(numbers);
    case "INT64":
      return BigInt64Array.from(numbers, BigInt);
    case "UINT64":
      return BigUint64Array.from(numbers, BigInt);
    case "FP32":
      return Float32Array.from(numbers);
    case "FP64":
      return Float64Array.from(numbers);
    default:
      return undefined;
  }
}
