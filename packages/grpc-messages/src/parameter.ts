import type { inference } from "#messages";

/** Value of a request or response parameter. */
export type ParameterScalar = string | number | bigint | boolean;

/** Encodes a parameter: whole numbers as int64, other numbers as double. */
export function encodeParameter(value: ParameterScalar): inference.InferParameter.$Properties {
  switch (typeof value) {
    case "boolean":
      return { boolParam: value };
    case "string":
      return { stringParam: value };
    case "bigint":
      return { int64Param: value };
    default:
      return Number.isSafeInteger(value) ? { int64Param: value } : { doubleParam: value };
  }
}
