import type { Parameters } from "@tritonjs/protocol";
import type { SequenceInfo, SequencePlace } from "./sequence-info.js";

/** What is known about one request besides its tensors. */
export interface RequestInfo extends SequencePlace {
  /** Id that the client gave, or an empty string. */
  readonly id: string;
  readonly parameters: Parameters;
  /** 0 for the default level, 1 for the highest. */
  readonly priority: number;
  /** Time that the client allows in the queue, 0 for any. */
  readonly queueTimeoutMicroseconds: number;
  readonly correlationId: bigint | string | undefined;
  readonly sequenceStart: boolean;
  readonly sequenceEnd: boolean;
  /** The sequence that the request belongs to; undefined for a model without sequences and for null requests. */
  readonly sequence: SequenceInfo | undefined;
  /** False for a null request, which fills an empty slot of a sequence batch: its outputs are thrown away. */
  readonly ready: boolean;
  /** Outputs that the client asked for; empty for all. */
  readonly requestedOutputs: readonly string[];
  /** Rows of this request along the batch axis; 0 for a model without one. */
  readonly batchSize: number;
}

/** A copy of what is known about a request, and nothing else: what users and workers are told of it. */
export function requestInfo(request: RequestInfo): RequestInfo {
  return {
    id: request.id,
    parameters: request.parameters,
    priority: request.priority,
    queueTimeoutMicroseconds: request.queueTimeoutMicroseconds,
    correlationId: request.correlationId,
    sequenceStart: request.sequenceStart,
    sequenceEnd: request.sequenceEnd,
    sequence: request.sequence,
    ready: request.ready,
    requestedOutputs: request.requestedOutputs,
    batchSize: request.batchSize,
  };
}
