import type { Parameters, ParameterValue } from "@tritonjs/core";
import type { inference } from "#proto";

type Parameter = inference.InferParameter.$Properties;

/** Response parameters as messages: whole numbers as int64, others as double. */
export function encodeParameters(parameters: Parameters): Record<string, Parameter> {
  const entries = Object.entries(parameters);
  if (entries.length === 0) return {};
  return Object.fromEntries(entries.map(([key, value]) => [key, encodeParameter(value)]));
}

/** One parameter as a message. */
export function encodeParameter(value: ParameterValue): Parameter {
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
