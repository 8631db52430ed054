import { type InferenceResponse, ownedByAnswer } from "@tritonjs/core/frontend";
import {
  type ErrorCode,
  type ErrorReason,
  errorWithoutStack,
  type ModelConfig,
  NO_PARAMETERS,
  TritonError,
} from "@tritonjs/protocol";
import { KIND, MOVED } from "./frame-kind.js";
import type { IncomingFrame } from "./incoming-frame.js";
import type { OutgoingFrame } from "./outgoing-frame.js";
import { readTensorMap, writeTensorMap } from "./tensors.js";

/** Flags of a response. */
export const RESPONSE = {
  final: MOVED << 1,
  /** An error follows. */
  error: MOVED << 2,
  /** Outputs follow. */
  outputs: MOVED << 3,
  /** The error is the refusal of the request. */
  refused: MOVED << 4,
  parameters: MOVED << 5,
  /** The id differs from that of the request. */
  id: MOVED << 6,
  /** The name or version of the model differs from what the request was decoded for. */
  model: MOVED << 7,
} as const;

/** The request that a response answers, as both sides know it. */
export interface AnsweredRequest {
  readonly id: string;
  readonly modelName: string;
  readonly modelVersion: string;
  readonly config: Pick<ModelConfig, "output">;
}

/** Writes an outcome of a request. Its tensors are copied: they may share memory with others. */
export function writeResponse(
  frame: OutgoingFrame,
  number: number,
  request: AnsweredRequest,
  outcome: InferenceResponse | TritonError | undefined,
  final: boolean,
  refused = false,
): void {
  let flags = final ? RESPONSE.final : 0;
  frame.open(KIND.response, number);
  if (TritonError.is(outcome)) {
    flags |= refused ? RESPONSE.error | RESPONSE.refused : RESPONSE.error;
    writeFramedError(frame, outcome);
  } else if (outcome !== undefined) {
    flags |= RESPONSE.outputs;
    if (outcome.id !== request.id) {
      flags |= RESPONSE.id;
      frame.text(outcome.id);
    }
    if (outcome.modelName !== request.modelName || outcome.modelVersion !== request.modelVersion) {
      flags |= RESPONSE.model;
      frame.text(outcome.modelName);
      frame.text(outcome.modelVersion);
    }
    if (outcome.parameters !== NO_PARAMETERS) {
      flags |= RESPONSE.parameters;
      frame.parameters(outcome.parameters);
    }
    writeTensorMap(frame, outcome.outputs, request.config.output, false);
  }
  frame.close(flags);
}

/** Reads the outcome of a request; undefined for an end without a response. */
export function readOutcome(
  frame: IncomingFrame,
  request: AnsweredRequest,
): InferenceResponse | TritonError | undefined {
  const { flags } = frame;
  if (flags & RESPONSE.error) return readFramedError(frame);
  if (!(flags & RESPONSE.outputs)) return undefined;
  // The engine handed over copies, which nothing else sees.
  frame.moved.forEach(ownedByAnswer);
  const hasModel = (flags & RESPONSE.model) !== 0;
  return {
    id: flags & RESPONSE.id ? frame.text() : request.id,
    modelName: hasModel ? frame.text() : request.modelName,
    modelVersion: hasModel ? frame.text() : request.modelVersion,
    parameters: flags & RESPONSE.parameters ? frame.parameters() : NO_PARAMETERS,
    outputs: readTensorMap(frame, request.config.output),
  };
}

/** Writes an error without its cause. */
export function writeFramedError(
  frame: OutgoingFrame,
  { code, reason, message, retryAfterMs }: TritonError,
): void {
  frame.text(code);
  frame.text(reason);
  frame.text(message);
  frame.double(retryAfterMs ?? Number.NaN);
}

/** Reads an error that {@link writeFramedError} wrote. */
export function readFramedError(frame: IncomingFrame): TritonError {
  const code = frame.text() as ErrorCode;
  const reason = frame.text() as ErrorReason;
  const message = frame.text();
  const retryAfterMs = frame.double();
  return errorWithoutStack(code, message, {
    reason: reason as never,
    ...(Number.isNaN(retryAfterMs) ? {} : { retryAfterMs }),
  });
}
