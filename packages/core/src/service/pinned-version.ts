import { join } from "node:path";
import type { ModelConfig } from "@tritonjs/protocol";
import type { ModelVersion } from "../model/model-version.js";
import type { InferInit, ResponseHandler } from "../request/inference-request-init.js";
import type { RequestHandle } from "../request/request-handle.js";
import type { PinnedModel, RoomWait } from "./inference-service.js";
import type { RefusalLine } from "./refusal-line.js";

/** The parts of the service that a pin uses. */
export interface PinOwner {
  readonly refusals: RefusalLine;
  /** @throws TritonError UNAVAILABLE while the server refuses requests. */
  assertOpen(): void;
  /** Looks up a version that is ready. @throws TritonError NOT_FOUND, UNAVAILABLE or INVALID_ARG. */
  find(name: string, version: string): ModelVersion;
}

/** The model version that one look-up has found. The request is decoded with its configuration. */
export class PinnedVersion implements PinnedModel {
  readonly config: ModelConfig;
  readonly #owner: PinOwner;
  readonly #model: ModelVersion;
  readonly #requested: string;

  /** @param requested the version as the client wrote it, for a repeated look-up */
  constructor(owner: PinOwner, model: ModelVersion, requested: string) {
    this.config = model.config;
    this.#owner = owner;
    this.#model = model;
    this.#requested = requested;
  }

  get name(): string {
    return this.#model.name;
  }

  get version(): number {
    return this.#model.version;
  }

  get labels(): ReadonlyMap<string, readonly string[]> {
    return this.#model.labels;
  }

  get directory(): string | undefined {
    const { directory, version } = this.#model;
    return directory && join(directory, String(version));
  }

  inService(): PinnedVersion {
    if (this.#model.state === "READY") return this;
    const found = this.#owner.find(this.name, this.#requested);
    return new PinnedVersion(this.#owner, found, this.#requested);
  }

  awaitRoom(id: string): RoomWait | undefined {
    if (!this.#model.isFull) return undefined;
    const { turn, leave } = this.#owner.refusals.placeFor(this.#model);
    return { turn: turn.then(() => this.#assertRoom(id)), leave };
  }

  infer(init: InferInit, onResponse: ResponseHandler): RequestHandle {
    this.#owner.assertOpen();
    return this.#model.send(init, onResponse);
  }

  /** @throws TritonError UNAVAILABLE if the queue is still full. */
  #assertRoom(id: string): void {
    this.#owner.assertOpen();
    const refusal = this.inService().#model.refusal(id);
    if (refusal !== undefined) throw refusal;
  }
}
