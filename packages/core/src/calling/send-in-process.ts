import { type InferOptions, type Tensor, TritonError } from "@tritonjs/protocol";
import type { Clock } from "../clock/clock.js";
import type { ModelVersion } from "../model/model-version.js";
import type { RequestTrace } from "../observe/trace/request-trace.js";

import type { InferInit, ResponseHandler } from "../request/inference-request-init.js";
import type { RequestHandle } from "../request/request-handle.js";

import { cancelledError, isLimited } from "./model-readiness.js";

/** Turns a number into a correlation id: an unsigned 64-bit integer. */
function toId(id: number): bigint {
  if (Number.isSafeInteger(id) && id >= 0) return BigInt(id);
  throw new TritonError(
    "INVALID_ARG",
    `sequence.id: expected an integer of at least 0 or a string, got ${id}`,
    {
      reason: "INVALID_SEQUENCE",
    },
  );
}

/** Options of a call that another request has caused. */
export interface NestedOptions extends InferOptions {
  /** Time limit of the causing request, in milliseconds on the clock. */
  readonly deadline?: number | undefined;
  /** Models that already execute the causing request, outermost first. */
  readonly callers?: readonly string[];
  /** Trace of the causing request. */
  readonly parentTrace?: RequestTrace | undefined;
  /** Outputs to return. @default all outputs */
  readonly requestedOutputs?: readonly string[] | undefined;
}

/**
 * Queues a request of this process and connects it to its abort signal. Throws the error with which the request is
 * refused.
 */
export function sendInProcess(
  model: ModelVersion,
  clock: Clock,
  inputs: ReadonlyMap<string, Tensor>,
  options: NestedOptions,
  onResponse: ResponseHandler,
): RequestHandle {
  const { signal, timeoutMs, sequence } = options;
  if (options.parameters !== undefined) checkParameters(model.name, options.parameters);
  if (signal?.aborted) throw cancelledError(signal);
  const deadline = isLimited(timeoutMs)
    ? earlier(options.deadline, timeoutMs, clock.now())
    : options.deadline;
  const correlationId = typeof sequence?.id === "number" ? toId(sequence.id) : sequence?.id;
  // A nested call is traced only if the request that caused it is.
  const sampled = options.callers === undefined ? model.tracing?.sample(model.name) : undefined;
  let unfollow: (() => void) | undefined;
  const init: InferInit = {
    id: options.id,
    inputs,
    requestedOutputs: options.requestedOutputs,
    parameters: options.parameters,
    priority: options.priority,
    queueTimeoutMicroseconds: options.queueTimeoutMicroseconds,
    deadline,
    callers: options.callers,
    correlationId,
    sequenceStart: sequence?.start,
    sequenceEnd: sequence?.end,
    trace: sampled ?? options.parentTrace?.child(model.name),
  };
  const settling: ResponseHandler =
    signal === undefined && sampled === undefined
      ? onResponse
      : (outcome, final, request) => {
          if (final) {
            unfollow?.();
            sampled?.release();
          }
          onResponse(outcome, final, request);
        };
  let request: RequestHandle;
  try {
    request = model.send(init, settling);
  } catch (error) {
    sampled?.release();
    throw error;
  }
  if (signal !== undefined && !request.settled) {
    const cancel = () => request.cancel(cancelledError(signal));
    // An inline callback has run by now, and may have aborted the signal itself.
    if (signal.aborted) cancel();
    else unfollow = followSignal(signal, cancel);
  }
  return request;
}

function earlier(deadline: number | undefined, timeoutMs: number, now: number): number {
  return Math.min(deadline ?? Number.POSITIVE_INFINITY, now + timeoutMs);
}

/** Checks parameters at run time, for callers without TypeScript: not every value can be sent to a worker. */
function checkParameters(model: string, parameters: NonNullable<InferOptions["parameters"]>): void {
  if (typeof parameters !== "object" || parameters === null) {
    throw new TritonError(
      "INVALID_ARG",
      `parameters of a request to model '${model}': expected an object, got ${String(parameters)}`,
      { reason: "INVALID_PARAMETER" },
    );
  }
  for (const [name, value] of Object.entries(parameters)) {
    if (!["string", "number", "bigint", "boolean"].includes(typeof value)) {
      throw new TritonError(
        "INVALID_ARG",
        `parameter '${name}' of a request to model '${model}': expected a string, number, bigint or boolean, ` +
          `got ${value === null ? "null" : typeof value}`,
        { reason: "INVALID_PARAMETER" },
      );
    }
  }
}

/** The callbacks of one signal, behind the only listener that the library adds to it. */
interface Followers {
  readonly calls: Set<() => void>;
  readonly listener: () => void;
}

const followersOf = new WeakMap<AbortSignal, Followers>();

/**
 * Calls `call` once when the signal aborts, unless the returned function has removed it before. Many requests may share
 * a signal. Separate listeners would make adding each one as expensive as the number of those before it.
 */
export function followSignal(signal: AbortSignal, call: () => void): () => void {
  let followers = followersOf.get(signal);
  if (followers === undefined) {
    const calls = new Set<() => void>();
    const listener = () => {
      for (const one of calls) one();
    };
    followers = { calls, listener };
    followersOf.set(signal, followers);
    signal.addEventListener("abort", listener, { once: true });
  }
  const { calls, listener } = followers;
  calls.add(call);
  return () => {
    calls.delete(call);
    if (calls.size > 0 || followersOf.get(signal)?.calls !== calls) return;
    followersOf.delete(signal);
    signal.removeEventListener("abort", listener);
  };
}
