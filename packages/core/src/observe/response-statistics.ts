import type { ResponseStatistics } from "@tritonjs/protocol";
import { addTo, zeroDuration } from "./duration.js";

/** Number of responses of one request that are counted, because a stream may have any number of them. */
const KEPT_RESPONSES = 1024;

/**
 * Counters of the responses of a decoupled model, by the index of a response within its request. The time of a response
 * starts at the previous one. The time of the first one starts when the model had its inputs.
 */
export class ResponseLog {
  readonly byIndex: ResponseStatistics[] = [];

  /** @param inferMs time until the model returned the response */
  success(index: number, inferMs: number, outputMs: number): void {
    const at = this.#at(index);
    if (at === undefined) return;
    addTo(at.computeInfer, inferMs);
    addTo(at.computeOutput, outputMs);
    addTo(at.success, inferMs + outputMs);
  }

  fail(index: number, inferMs: number): void {
    const at = this.#at(index);
    if (at === undefined) return;
    addTo(at.computeInfer, inferMs);
    addTo(at.fail, inferMs);
  }

  empty(index: number, inferMs: number): void {
    const at = this.#at(index);
    if (at === undefined) return;
    addTo(at.computeInfer, inferMs);
    addTo(at.emptyResponse, inferMs);
  }

  cancel(index: number, inferMs: number): void {
    const at = this.#at(index);
    if (at !== undefined) addTo(at.cancel, inferMs);
  }

  #at(index: number): ResponseStatistics | undefined {
    if (index >= KEPT_RESPONSES) return undefined;
    while (this.byIndex.length <= index) this.byIndex.push(noResponses());
    return this.byIndex[index];
  }
}

function noResponses(): ResponseStatistics {
  return {
    computeInfer: zeroDuration(),
    computeOutput: zeroDuration(),
    success: zeroDuration(),
    fail: zeroDuration(),
    emptyResponse: zeroDuration(),
    cancel: zeroDuration(),
  };
}
