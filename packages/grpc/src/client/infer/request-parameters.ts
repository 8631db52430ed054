import type { inference } from "#proto";
import { encodeParameter } from "../../encode/infer-parameter.js";
import { requestParameters as commonParameters, type RequestOptions } from "../core.js";

type Parameter = inference.InferParameter.$Properties;

/**
 * The `parameters` of an infer request as messages.
 *
 * @throws TritonError INVALID_ARG for a custom parameter with a name that the protocol gives a meaning.
 */
export function requestParameters(options: RequestOptions): Record<string, Parameter> {
  const all: Record<string, Parameter> = Object.create(null);
  for (const [name, value] of Object.entries(commonParameters(options))) all[name] = encodeParameter(value);
  // These two have a type that their values do not tell.
  if (all.priority !== undefined) all.priority = { uint64Param: options.priority! };
  if (all.timeout !== undefined) all.timeout = { int64Param: options.timeoutMicroseconds! };
  return all;
}
