import { type Parameters, type ParameterValue, TritonError } from "@tritonjs/protocol";

import type { SequencePlace } from "../../request/sequence-info.js";
import type { EnsembleTensor } from "./ensemble-tensor.js";

/** Copies the sequence position of a request, and nothing else. */
export function plainSequence({ correlationId, sequenceStart, sequenceEnd }: SequencePlace): SequencePlace {
  return { correlationId, sequenceStart, sequenceEnd };
}

/**
 * The sequence of a step's request. It is that of the step's first tensor that comes from another step, else that of
 * the ensemble's request.
 */
export function sequenceOf(
  names: Iterable<string>,
  tensors: ReadonlyMap<string, EnsembleTensor>,
  request: SequencePlace,
): SequencePlace {
  for (const name of names) {
    const sequence = tensors.get(name)?.sequence;
    if (sequence !== undefined) return sequence;
  }
  return request;
}

/**
 * The sequence of the steps after a response. It is that of the step itself, unless the response has one of the
 * parameters `sequence_id`, `sequence_start` and `sequence_end`. If it has any of them, missing flags are off.
 *
 * @throws TritonError INVALID_ARG for a parameter of another type.
 */
export function sequenceAfter(step: SequencePlace, parameters: Parameters): SequencePlace {
  const { sequence_id: id, sequence_start: start, sequence_end: end } = parameters;
  if (id === undefined && start === undefined && end === undefined) return step;
  return {
    correlationId: id === undefined ? step.correlationId : toId(id),
    sequenceStart: toFlag("sequence_start", start),
    sequenceEnd: toFlag("sequence_end", end),
  };
}

function toId(value: ParameterValue): bigint | string {
  if (typeof value === "string" || typeof value === "bigint") return value;
  if (typeof value === "number" && Number.isInteger(value)) return BigInt.asUintN(64, BigInt(value));
  throw new TritonError(
    "INVALID_ARG",
    "expected parameter 'sequence_id' to be TRITONSERVER_PARAMETER_INT or TRITONSERVER_PARAMETER_STRING",
    { reason: "INVALID_SEQUENCE" },
  );
}

function toFlag(name: string, value: ParameterValue | undefined): boolean {
  if (value === undefined) return false;
  if (typeof value === "boolean") return value;
  throw new TritonError("INVALID_ARG", `expect parameter '${name}' to be TRITONSERVER_PARAMETER_BOOL`, {
    reason: "INVALID_SEQUENCE",
  });
}
