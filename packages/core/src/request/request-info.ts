import type { Parameters } from "@tritonjs/protocol";
import type { SequenceInfo, SequencePlace } from "./sequence-info.js";

/** Properties of one request without its tensors. */
export interface RequestInfo extends SequencePlace {
  /** Id that the client set, or an empty string. */
  readonly id: string;
  readonly parameters: Parameters;
  /** 0 for the default level, 1 for the highest. */
  readonly priority: number;
  /** Longest wait in the queue that the client allows; 0 for any. */
  readonly queueTimeoutMicroseconds: number;
  readonly correlationId: bigint | string | undefined;
  readonly sequenceStart: boolean;
  readonly sequenceEnd: boolean;
  /** The sequence of the request; undefined for a model without sequences and for null requests. */
  readonly sequence: SequenceInfo | undefined;
  /** False for a null request, which fills an empty slot of a sequence batch; its outputs are discarded. */
  readonly ready: boolean;
  /** Outputs that the client asked for; empty for all. */
  readonly requestedOutputs: readonly string[];
  /** Rows of this request along the batch axis; 0 for a model without one. */
  readonly batchSize: number;
  /** W3C header `traceparent` for services that work on behalf of the request; undefined if it has no span. */
  readonly traceparent?: string | undefined;
}

/** Copies the properties of a request, and nothing else, for callbacks and workers. */
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
    ...(request.traceparent !== undefined && { traceparent: request.traceparent }),
  };
}
