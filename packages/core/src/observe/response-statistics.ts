import type { ResponseStatistics } from "@tritonjs/protocol";
import { addTo, zeroDuration } from "./duration.js";

/** Responses of one request beyond these are not counted: a stream may have any number of them. */
const KEPT_RESPONSES = 1024;

/**
 * Counters of the responses of a decoupled model, by their index among those to one request. A response's time runs
 * from the one before it, the first's from the moment at which the model had its inputs.
 */
export class ResponseLog {
  readonly byIndex: ResponseStatistics[] = [];

  /** @param inferMs until the model handed the response over */
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
