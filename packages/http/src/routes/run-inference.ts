import type { InferenceResponse, PinnedModel, ResponseHandler, RoomWait } from "@tritonjs/core/frontend";
import { TritonError } from "@tritonjs/protocol";
import type { DecodedRequest } from "../decode/decoded-request.js";
import { ClientGone } from "../exchange/body-buffer.js";
import type { Exchange } from "./route.js";

/**
 * Runs a request that has exactly one answer.
 *
 * @throws TritonError when the request is rejected or fails, INTERNAL when there is not exactly one answer.
 */
export function runSingle(
  exchange: Exchange,
  model: PinnedModel,
  decoded: DecodedRequest,
): Promise<InferenceResponse> {
  return new Promise((resolve, reject) => {
    let count = 0;
    let last: InferenceResponse | undefined;
    let error: TritonError | undefined;
    startOrRefuse(exchange, model, decoded, reject, (outcome, final) => {
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
 * The turn of a refusal when the model's queue is full, to be awaited before the body is read: its content cannot
 * matter. Undefined while the queue has room. Rejects with UNAVAILABLE if the queue is still full at the turn, and with
 * ClientGone when the client leaves.
 */
export function turnAtFullQueue(exchange: Exchange, model: PinnedModel): Promise<void> | undefined {
  const wait = model.awaitRoom("");
  return wait && turnOf(exchange, wait);
}

async function turnOf(exchange: Exchange, wait: RoomWait): Promise<void> {
  const { request } = exchange;
  const stopWatching = request.onGone(() => wait.leave());
  try {
    await wait.turn;
  } catch (refusal) {
    if (request.gone) throw new ClientGone(refusal);
    exchange.errorType = "application/json";
    throw refusal;
  } finally {
    stopWatching();
  }
}

/** Works as `start`, but passes the error of a rejected request to `refuse`, at the turn of the refusal. */
export function startOrRefuse(
  exchange: Exchange,
  model: PinnedModel,
  decoded: DecodedRequest,
  refuse: (error: unknown) => void,
  onResponse: ResponseHandler,
): void {
  try {
    start(exchange, model, decoded, refuse, onResponse);
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
 * Sends a request, and cancels it when the client leaves. Once the model has accepted it, errors are `text/plain`.
 *
 * @param refuse gets the error of a request that the model rejects later: `onResponse` is then never called
 * @throws TritonError when the request is rejected: `onResponse` is then never called.
 */
function start(
  exchange: Exchange,
  model: PinnedModel,
  decoded: DecodedRequest,
  refuse: (error: unknown) => void,
  onResponse: ResponseHandler,
): void {
  const { request: sender, trace } = exchange;
  if (sender.gone) throw new ClientGone();
  decoded.trace = trace?.request;
  let stopWatching: (() => void) | undefined;
  const sent = model.infer(decoded, (outcome, final, request) => {
    if (final) stopWatching?.();
    if (request.refused) {
      refuse(outcome);
      return;
    }
    exchange.errorType = "text/plain";
    if (outcome !== undefined) trace?.responded();
    onResponse(outcome, final, request);
  });
  if (sent.settled) return;
  // An inline callback has already run by now, and the client may have left meanwhile.
  if (sender.gone) sent.cancel();
  else stopWatching = sender.onGone(() => sent.cancel());
}
