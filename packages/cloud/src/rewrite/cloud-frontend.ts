import type { Frontend } from "@tritonjs/core";
import type { FrontendAddress, InferenceService } from "@tritonjs/core/frontend";
import { ListeningFrontend, type ListenOptions, type V2Handler } from "@tritonjs/http/frontend";

/** A frontend on a port of its own, whose handler needs models that are in service. */
export class CloudFrontend implements Frontend {
  readonly name: string;
  readonly #options: ListenOptions;
  readonly #handlerOf: (service: InferenceService) => Promise<V2Handler>;
  #listening: ListeningFrontend | undefined;

  constructor(options: ListenOptions, handlerOf: (service: InferenceService) => Promise<V2Handler>) {
    this.name = options.name;
    this.#options = options;
    this.#handlerOf = handlerOf;
  }

  async start(service: InferenceService): Promise<FrontendAddress> {
    const handler = await this.#handlerOf(service);
    this.#listening = new ListeningFrontend(this.#options, () => handler);
    return this.#listening.start(service);
  }

  leave(): void {
    this.#listening?.leave();
  }

  async stop(drainTimeoutMs?: number): Promise<void> {
    await this.#listening?.stop(drainTimeoutMs);
  }
}
