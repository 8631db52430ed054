import type { inference } from "#messages";

/** A value that a parameter of a request or response can have. */
export type ParameterScalar = string | number | bigint | boolean;

/** A parameter as a message: whole numbers as int64, other numbers as double. */
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
