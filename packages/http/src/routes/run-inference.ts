import {
  InferenceRequest,
  type InferenceRequestInit,
  type InferenceResponse,
  type ResponseHandler,
  TritonError,
} from "@tritonjs/core";
import { ClientGone } from "../exchange/body-buffer.js";
import type { Exchange } from "./route.js";

/** A decoded request: what is left out comes from the path. */
export type RequestBody = Omit<InferenceRequestInit, "modelName" | "modelVersion" | "onResponse">;

/** Receives what a request leads to, and the request itself, which can be paused. */
export type ResponseListener = (
  outcome: Parameters<ResponseHandler>[0],
  final: boolean,
  request: InferenceRequest,
) => void;

/**
 * Runs a request that has exactly one answer.
 *
 * @throws TritonError when the request is refused or fails, INTERNAL when there is not exactly one answer.
 */
export function runSingle(exchange: Exchange, body: RequestBody): Promise<InferenceResponse> {
  return new Promise((resolve, reject) => {
    let count = 0;
    let last: InferenceResponse | undefined;
    let error: TritonError | undefined;
    startOrRefuse(exchange, body, reject, (outcome, final) => {
      if (TritonError.is(outcome)) error ??= outcome;
      else if (outcome !== undefined) {
        count++;
        last = outcome;
      }
      if (!final) return;
      if (error !== undefined) reject(error);
      else if (last !== undefined && count === 1) resolve(last);
      else
        reject(
          new TritonError("INTERNAL", `expected a single response, got ${count}`, {
            reason: "INVALID_OUTPUT",
          }),
        );
    });
  });
}

/**
 * The turn of a request whose model's queue is full, to be awaited before its body is read: what it holds cannot matter.
 * Undefined while the queue has room. Rejects with UNAVAILABLE when it is still full then.
 */
export function turnAtFullQueue(exchange: Exchange): Promise<void> | undefined {
  const room = exchange.service.awaitRoom?.(exchange.model, exchange.version, "");
  return room?.catch((refusal: unknown) => {
    exchange.errorType = "application/json";
    throw refusal;
  });
}

/** As `start`, and hands the error of a request that is refused to `refuse`, when it is the refusal's turn. */
export function startOrRefuse(
  exchange: Exchange,
  body: RequestBody,
  refuse: (error: unknown) => void,
  onResponse: ResponseListener,
): void {
  try {
    start(exchange, body, onResponse);
  } catch (thrown) {
    const turn = isUnavailable(thrown) ? exchange.service.refusalTurn?.() : undefined;
    if (turn === undefined) refuse(thrown);
    else void turn.then(() => refuse(thrown));
  }
}

function isUnavailable(thrown: unknown): boolean {
  return TritonError.is(thrown) && thrown.code === "UNAVAILABLE";
}

/**
 * Hands a request to the service and cancels it when the client leaves. From the moment the service has taken it,
 * errors are `text/plain`.
 *
 * @throws TritonError when the request is refused: `onResponse` is then never called.
 */
function start(exchange: Exchange, body: RequestBody, onResponse: ResponseListener): void {
  const { service, request: sender, trace } = exchange;
  if (sender.gone) throw new ClientGone();
  const request = new InferenceRequest({
    modelName: exchange.model,
    modelVersion: exchange.version,
    id: body.id,
    inputs: body.inputs,
    requestedOutputs: body.requestedOutputs,
    parameters: body.parameters,
    priority: body.priority,
    queueTimeoutMicroseconds: body.queueTimeoutMicroseconds,
    correlationId: body.correlationId,
    sequenceStart: body.sequenceStart,
    sequenceEnd: body.sequenceEnd,
    trace: trace?.request,
    onResponse(outcome, final) {
      exchange.errorType = "text/plain";
      if (outcome !== undefined) trace?.responded();
      if (final) stopWatching();
      onResponse(outcome, final, request);
    },
  });
  const stopWatching = sender.onGone(() => request.cancel());
  try {
    service.infer(request);
  } catch (thrown) {
    stopWatching();
    throw thrown;
  }
}
