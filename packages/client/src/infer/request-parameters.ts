import { isReservedParameter, type ParameterValue, TritonError } from "@tritonjs/protocol";
import type { RequestOptions } from "../options/infer-options.js";

/**
 * The `parameters` of an infer request.
 *
 * @throws TritonError INVALID_ARG for a custom parameter with a name that the protocol reserves.
 */
export function requestParameters({
  parameters = {},
  sequence,
  priority,
  queueTimeoutMicroseconds,
}: RequestOptions): Record<string, ParameterValue> {
  const all: Record<string, ParameterValue> = Object.create(null);
  for (const [name, value] of Object.entries(parameters)) {
    if (isReservedParameter(name)) {
      const message = `Parameter "${name}" is a reserved parameter and cannot be specified.`;
      throw new TritonError("INVALID_ARG", message, { reason: "INVALID_PARAMETER" });
    }
    all[name] = value;
  }
  if (sequence !== undefined) {
    all.sequence_id = sequence.id;
    all.sequence_start = sequence.start ?? false;
    all.sequence_end = sequence.end ?? false;
  }
  if (priority !== undefined && priority !== 0) all.priority = priority;
  if (queueTimeoutMicroseconds !== undefined) all.timeout = queueTimeoutMicroseconds;
  return all;
}
