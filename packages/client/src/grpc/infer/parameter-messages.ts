import { encodeParameter, type inference } from "@tritonjs/grpc-messages";
import { requestParameters } from "../../infer/request-parameters.js";
import type { RequestOptions } from "../../options/infer-options.js";

type Parameter = inference.InferParameter.$Properties;

/**
 * Encodes the `parameters` of an infer request as messages.
 *
 * @throws TritonError INVALID_ARG for a custom parameter with a name that the protocol reserves.
 */
export function parameterMessages(options: RequestOptions): Record<string, Parameter> {
  const all: Record<string, Parameter> = Object.create(null);
  for (const [name, value] of Object.entries(requestParameters(options))) all[name] = encodeParameter(value);
  // The protocol gives these two a type that their values do not show.
  if (all.priority !== undefined) all.priority = { uint64Param: options.priority! };
  if (all.timeout !== undefined) all.timeout = { int64Param: options.queueTimeoutMicroseconds! };
  return all;
}
