import { NO_PARAMETERS, type Parameters, type Tensor } from "@tritonjs/protocol";
import { newAsyncContext } from "../../request/inference-request.js";
import type { InferInit, ResponseHandler } from "../../request/inference-request-init.js";
import { PendingRequest } from "../../request/pending-request.js";
import type { SequencePlace } from "../../request/sequence-info.js";

import type { PlannedStep } from "./ensemble-plan.js";
import { dimsOf, type EnsembleTensor } from "./ensemble-tensor.js";
import type { EnsembleMember } from "./member.js";

/** Everything that the request of a step is constructed from. */
export interface StepRequestInit {
  /** The request of the ensemble. */
  readonly parent: PendingRequest;
  /** Name of the ensemble in the list of the request's callers. */
  readonly caller: string;
  readonly member: EnsembleMember;
  readonly step: PlannedStep;
  readonly sequence: SequencePlace;
  readonly tensors: ReadonlyMap<string, EnsembleTensor>;
  readonly requestedOutputs: readonly string[];
  /** Time on the model's clock, in milliseconds. */
  readonly now: number;
  readonly onResponse: ResponseHandler;
}

/** Makes the request of a step. It inherits all properties of the ensemble's request. */
export function stepRequest({ parent, caller, member, step, tensors, now, ...init }: StepRequestInit) {
  const { config } = member;
  const inputs = new Map<string, Tensor>();
  for (const [input, name] of step.inputs) {
    const tensor = tensors.get(name)!.take(dimsOf(config.input, input), config.maxBatchSize > 0);
    if (tensor !== undefined) inputs.set(input, tensor);
  }
  const trace = parent.trace?.child(config.name);
  const asked: InferInit = {
    id: parent.id,
    inputs,
    requestedOutputs: init.requestedOutputs,
    parameters: parent.parameters,
    priority: parent.priority,
    queueTimeoutMicroseconds: remainingMicroseconds(parent, now),
    deadline: parent.deadline,
    ...init.sequence,
    callers: [...parent.callers, caller],
    // The callback of a traced step sees the step's own span, in the context of the ensemble's sender.
    asyncContext:
      trace && parent.given.ready
        ? parent.given.runInContext(() => trace.within(newAsyncContext))
        : parent.given.asyncContext,
    trace,
  };
  return new PendingRequest(asked, config.name, init.onResponse);
}

/** Remaining time that the request may wait in queues. At least 1, because 0 means no limit. */
function remainingMicroseconds(
  { queueTimeoutMicroseconds, queueStart }: PendingRequest,
  now: number,
): number {
  if (queueTimeoutMicroseconds === 0) return 0;
  return Math.max(1, Math.round(queueTimeoutMicroseconds - (now - queueStart) * 1000));
}

/** Sequence parameters of an ensemble's answer, which it has even without a sequence. */
export function sequenceParameters(
  { correlationId = 0n, sequenceStart, sequenceEnd }: SequencePlace,
  outputs: ReadonlyMap<string, Tensor>,
): Parameters {
  if (outputs.size === 0) return NO_PARAMETERS;
  const id = typeof correlationId === "bigint" ? asNumber(correlationId) : correlationId;
  return { sequence_id: id, sequence_start: sequenceStart, sequence_end: sequenceEnd };
}

/** Parameters are bigints only outside the safe range. */
function asNumber(value: bigint): number | bigint {
  return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value;
}
