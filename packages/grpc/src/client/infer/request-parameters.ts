import type { inference } from "#proto";
import { encodeParameter } from "../../encode/infer-parameter.js";
import { TritonError } from "../core.js";
import type { InferRequestOptions } from "./infer-options.js";

type Parameter = inference.InferParameter.$Properties;

/** Names that the protocol gives a meaning. */
const RESERVED: ReadonlySet<string> = new Set([
  "sequence_id",
  "sequence_start",
  "sequence_end",
  "priority",
  "timeout",
  "headers",
  "binary_data_output",
]);

/**
 * The `parameters` of an infer request.
 *
 * @throws TritonError INVALID_ARG for a custom parameter with a name that the protocol gives a meaning.
 */
export function requestParameters({
  parameters = {},
  sequence,
  priority,
  timeoutMicroseconds,
}: Omit<InferRequestOptions, "modelVersion">): Record<string, Parameter> {
  const all: Record<string, Parameter> = Object.create(null);
  for (const [name, value] of Object.entries(parameters)) {
    if (RESERVED.has(name) || name.startsWith("triton_")) {
      const message = `Parameter "${name}" is a reserved parameter and cannot be specified.`;
      throw new TritonError("INVALID_ARG", message);
    }
    all[name] = encodeParameter(value);
  }
  if (sequence !== undefined) {
    all.sequence_id = encodeParameter(sequence.id);
    all.sequence_start = encodeParameter(sequence.start ?? false);
    all.sequence_end = encodeParameter(sequence.end ?? false);
  }
  if (priority !== undefined && priority !== 0) all.priority = { uint64Param: priority };
  if (timeoutMicroseconds !== undefined) all.timeout = { int64Param: timeoutMicroseconds };
  return all;
}
