import { encodeParameter, type inference } from "@tritonjs/grpc-messages";
import type { Parameters } from "@tritonjs/protocol";

type Parameter = inference.InferParameter.$Properties;

/** Encodes response parameters: whole numbers as int64, others as double. */
export function encodeParameters(parameters: Parameters): Record<string, Parameter> {
  const entries = Object.entries(parameters);
  if (entries.length === 0) return {};
  return Object.fromEntries(entries.map(([key, value]) => [key, encodeParameter(value)]));
}
