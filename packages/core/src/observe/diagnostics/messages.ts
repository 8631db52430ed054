import type { Parameters, Tensor, TritonError } from "@tritonjs/protocol";
import type { CutReason } from "../cut-log.js";

/** A request, in all messages about it: always the same object, so that it can be the key of a `WeakMap`. */
export interface DiagnosedRequest {
  readonly model: string;
  /** Version of the model that accepted the request. */
  readonly version: string;
  /** Id that the client set, or an empty string. */
  readonly id: string;
  /** Rows along the batch axis; 1 for a model without one. */
  readonly rows: number;
  /** 0 for the default level, 1 for the highest. */
  readonly priority: number;
  readonly parameters: Parameters;
  /** Id of the sequence; undefined for a request that belongs to none. */
  readonly correlationId: bigint | string | undefined;
  /** Models that sent the request, as `name/version`, outermost first; empty for a request of a client. */
  readonly callers: readonly string[];
  /** Trace to which the request belongs, 32 hexadecimal digits; undefined if it is not part of one. */
  readonly traceId: string | undefined;
}

/** A model has accepted a request. Its input checks are done. */
export interface RequestStartMessage {
  readonly request: DiagnosedRequest;
}

/** A request waits for a batch or an instance. There is no such message for a request that runs at once. */
export interface RequestQueuedMessage {
  readonly request: DiagnosedRequest;
  /** Requests of the model that wait, including this one. */
  readonly waiting: number;
}

/** A model has refused a request: it was invalid, or the queue was full. No other message follows. */
export interface RequestRefusedMessage {
  readonly model: string;
  readonly version: string;
  readonly id: string;
  /** The error with which the request is answered. */
  readonly error: unknown;
}

/** A model has made a response to a request: one of many if it is decoupled. */
export interface RequestResponseMessage {
  readonly request: DiagnosedRequest;
  /** All outputs of the model by name, also those that the request does not want. They must not be changed. */
  readonly outputs: ReadonlyMap<string, Tensor>;
  /** Time since the acceptance of the request, in milliseconds. */
  readonly durationMs: number;
}

/** A request is over. */
export interface RequestSettledMessage {
  readonly request: DiagnosedRequest;
  /** Undefined if the request succeeded. */
  readonly error: TritonError | undefined;
  /** Time since its acceptance, in milliseconds. */
  readonly durationMs: number;
}

/** A batch that an instance has taken. */
export interface BatchMessage {
  readonly model: string;
  readonly version: string;
  /** Name of the instance. */
  readonly instance: string;
  /** Rows of the batch. */
  readonly batchSize: number;
  /** Why the batch has exactly these requests; undefined for a model without a batcher. */
  readonly cut: CutReason | undefined;
  readonly requests: readonly DiagnosedRequest[];
}

/** The state of a model version has changed. */
export interface ModelStateMessage {
  readonly model: string;
  readonly version: string;
  readonly state: "UNKNOWN" | "LOADING" | "READY" | "UNLOADING" | "UNAVAILABLE";
  /** Why the version is UNAVAILABLE; empty for the other states. */
  readonly reason: string;
}

/** A worker of an instance has died and will be restarted, or has restarted. */
export interface InstanceRestartMessage {
  readonly model: string;
  readonly version: string;
  readonly instance: string;
  /** `restarting` after each death and each failed restart, `restarted` when the instance takes batches again. */
  readonly phase: "restarting" | "restarted";
  /** Why the worker died, or why its restart failed; undefined for `restarted`. */
  readonly error: TritonError | undefined;
  /** Pause before the next attempt, in milliseconds; 0 for `restarted`. */
  readonly pauseMs: number;
}

/** The messages of each channel by its name. */
export interface DiagnosticMessages {
  "tritonjs:request:start": RequestStartMessage;
  "tritonjs:request:queued": RequestQueuedMessage;
  "tritonjs:request:refused": RequestRefusedMessage;
  "tritonjs:request:response": RequestResponseMessage;
  "tritonjs:request:settled": RequestSettledMessage;
  "tritonjs:batch:formed": BatchMessage;
  "tritonjs:model:state": ModelStateMessage;
  "tritonjs:instance:restart": InstanceRestartMessage;
}
