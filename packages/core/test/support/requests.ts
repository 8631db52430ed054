import { type Tensor, TritonError } from "@tritonjs/protocol";
import type { InferInit, RequestSender } from "../../src/request/inference-request.js";
import { InferenceRequest } from "../../src/request/inference-request.js";
import type { InferenceResponse } from "../../src/request/inference-response.js";
import { ones } from "./tensors.js";

/** Fields of a request besides its inputs. */
export interface RequestFields extends Partial<Omit<InferInit, "inputs">> {
  readonly onResponse?: RequestSender["receive"];
}

/** A request to model `m`; its outcome is dropped unless `onResponse` is given. */
export function requestWith(
  inputs: Readonly<Record<string, Tensor>>,
  { onResponse: receive = () => {}, ...init }: RequestFields = {},
): InferenceRequest {
  return new InferenceRequest("m", { ...init, inputs: new Map(Object.entries(inputs)) }, { receive });
}

/** A validated request with this many rows that has waited since `queueStart`. */
export function queuedRequest(rows: number, queueStart = 0, columns = 2): InferenceRequest {
  const request = requestWith({ x: ones(rows, columns) });
  request.batchSize = rows;
  request.queueStart = queueStart;
  return request;
}

/** The outcome of a request: the response, or code and message of the error. */
export function outcomeText(outcome: InferenceResponse | TritonError | undefined): string {
  if (outcome === undefined) return "nothing";
  return TritonError.is(outcome) ? `${outcome.code} ${outcome.message}` : "response";
}

/** Code and message of the error that a call throws. */
export function thrownText(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    return TritonError.is(error) ? `${error.code} ${error.message}` : String(error);
  }
  return "nothing was thrown";
}
