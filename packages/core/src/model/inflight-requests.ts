import type { TritonError } from "../errors/triton-error.js";
import type { InferenceRequest } from "../request/inference-request.js";

/** The requests that a model has accepted and not answered yet. */
export class InflightRequests {
  readonly #requests = new Set<InferenceRequest>();
  #emptied: (() => void) | undefined;

  get size(): number {
    return this.#requests.size;
  }

  add(request: InferenceRequest): void {
    this.#requests.add(request);
  }

  delete(request: InferenceRequest): void {
    this.#requests.delete(request);
    if (this.#requests.size === 0) this.#emptied?.();
  }

  /** Resolves when there is none. */
  async empty(): Promise<void> {
    if (this.#requests.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#emptied = resolve;
    });
  }

  /** Ends all of them. */
  cancel(error: TritonError): void {
    for (const request of [...this.#requests]) request.cancel(error);
  }
}
