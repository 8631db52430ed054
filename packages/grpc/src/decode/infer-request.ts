import {
  freeWhenUsed,
  type InferInit,
  type RequestRegions,
  type RequestTrace,
} from "@tritonjs/core/frontend";
import type { inference } from "@tritonjs/grpc-messages";
import { NO_PARAMETERS, type Parameters, type Tensor } from "@tritonjs/protocol";
import { decodeInputs } from "./infer-inputs.js";
import { decodeInferParameters, type InferParameters } from "./infer-parameters.js";
import { decodeOutputForms, NO_FORMS, type OutputForms, requestedOutputNames } from "./requested-outputs.js";

const NO_INPUTS: ReadonlyMap<string, Tensor> = new Map();
const NO_NAMES: readonly string[] = [];

/**
 * A request as in its message; the model's request is made directly from it. `outputs` and `enableEmptyFinalResponse`
 * say how to answer.
 */
export class DecodedMessage implements InferInit, InferParameters {
  id = "";
  inputs = NO_INPUTS;
  requestedOutputs = NO_NAMES;
  parameters: Parameters = NO_PARAMETERS;
  priority = 0;
  queueTimeoutMicroseconds = 0;
  correlationId: bigint | string | undefined = undefined;
  sequenceStart = false;
  sequenceEnd = false;
  trace: RequestTrace | undefined = undefined;
  outputs: OutputForms = NO_FORMS;
  enableEmptyFinalResponse = false;
  onInputsUsed: (() => void) | undefined = undefined;
}

/**
 * Decodes the request in a message.
 *
 * @param forwarded Parameters made of headers.
 * @param regions Holds the shared memory that the message names, until the caller releases it.
 * @throws TritonError INVALID_ARG, NOT_FOUND or UNSUPPORTED for the first fault.
 */
export function decodeInferRequest(
  message: inference.ModelInferRequest,
  forwarded: Parameters,
  regions: RequestRegions,
): DecodedMessage {
  const request = new DecodedMessage();
  request.id = message.id;
  decodeInferParameters(message.parameters, forwarded, request);
  request.inputs = decodeInputs(message, regions);
  request.outputs = decodeOutputForms(message.outputs, regions);
  request.requestedOutputs = requestedOutputNames(message.outputs);
  return request;
}

/**
 * A function that frees the memory of a message when its inputs have been used; undefined for small messages. A large
 * message must be in memory of its own.
 */
export function freeMessageWhenUsed({
  rawInputContents,
}: inference.ModelInferRequest): (() => void) | undefined {
  // All raw contents are views of the same message, so one large content is enough.
  for (const contents of rawInputContents) {
    const free = freeWhenUsed(contents);
    if (free !== undefined) return free;
  }
  return undefined;
}
