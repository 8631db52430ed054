import type { TritonError } from "../errors/triton-error.js";
import type { InferenceRequest } from "./inference-request.js";

/** Whoever keeps a waiting request: told when the request is over before its turn. */
export interface RequestHolder {
  remove(request: InferenceRequest): void;
}

/** Counts what a model has answered, when the answer is out: one that is held back may still be given up. */
export interface AnswerCounter {
  /** The last answer is out; `error` unless it is a success. */
  answered(request: InferenceRequest, error: TritonError | undefined): void;
}

/** Stands between a request and its handler, to hold answers back until it is their turn. */
export interface ResponseGate {
  pass(deliver: () => void, final: boolean): void;
  /** The request was given up: nobody need wait for it. */
  leave(): void;
}
