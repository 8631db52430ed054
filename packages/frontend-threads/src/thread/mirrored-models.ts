import { join } from "node:path";
import {
  type InferInit,
  type PinnedModel,
  parseVersion,
  pickNamespace,
  pickVersion,
  type RequestHandle,
  type ResponseHandler,
  type WatchedModel,
  type WatchedVersion,
} from "@tritonjs/core/frontend";
import type { ModelConfig } from "@tritonjs/protocol";

/** What the copies of models need of their thread. */
export interface ModelsOwner {
  /** Takes the changes of the service that the engine has sent by now. */
  catchUp(): void;
  /** @throws TritonError UNAVAILABLE while the server refuses requests. */
  assertOpen(): void;
  /** Sends a request to the engine. */
  send(model: MirroredModel, init: InferInit, onResponse: ResponseHandler): RequestHandle;
}

type ReadyVersion = WatchedVersion & { readonly config: ModelConfig };

/** The copies of all model versions, and the look-ups of the protocol with Triton's texts. */
export class MirroredModels {
  readonly #models = new Map<string, Map<string, Map<number, WatchedVersion>>>();
  readonly #namespacing: boolean;
  readonly #owner: ModelsOwner;

  constructor(namespacing: boolean, owner: ModelsOwner) {
    this.#namespacing = namespacing;
    this.#owner = owner;
  }

  /** Takes a change. */
  set({ name, namespace, versions }: WatchedModel): void {
    let spaces = this.#models.get(name);
    if (versions === undefined) {
      spaces?.delete(namespace);
      if (spaces?.size === 0) this.#models.delete(name);
      return;
    }
    if (spaces === undefined) {
      spaces = new Map();
      this.#models.set(name, spaces);
    }
    spaces.set(namespace, new Map(versions.map((version) => [version.version, version])));
  }

  /** True if a model in service reports its own readiness. */
  get someReportReadiness(): boolean {
    for (const spaces of this.#models.values()) {
      for (const versions of spaces.values()) {
        for (const { state, reportsReadiness } of versions.values()) {
          if (state === "READY" && reportsReadiness) return true;
        }
      }
    }
    return false;
  }

  /** @throws TritonError as the service of the engine does. */
  find(name: string, requested: string): ReadyVersion {
    this.#owner.catchUp();
    this.#owner.assertOpen();
    const version = parseVersion(requested);
    const versions = pickNamespace(name, this.#models.get(name), this.#namespacing);
    return pickVersion(name, versions, version) as ReadyVersion;
  }

  pin(name: string, requested: string): MirroredModel {
    return new MirroredModel(this, this.#owner, this.find(name, requested), requested);
  }

  /** Numbers of the ready versions of a model, in ascending order. */
  readyVersions(name: string): number[] {
    const spaces = [...(this.#models.get(name)?.values() ?? [])];
    const ready = spaces.flatMap((versions) =>
      [...versions.values()].filter(({ state }) => state === "READY"),
    );
    return ready.map(({ version }) => version).sort((a, b) => a - b);
  }

  /** True while a version is in service. */
  has({ name, namespace, version, key }: WatchedVersion): boolean {
    this.#owner.catchUp();
    const now = this.#models.get(name)?.get(namespace)?.get(version);
    return now?.key === key && now.state === "READY";
  }
}

/** The copy of a model version that one look-up has found. */
export class MirroredModel implements PinnedModel {
  readonly config: ModelConfig;
  readonly #models: MirroredModels;
  readonly #owner: ModelsOwner;
  readonly #version: ReadyVersion;
  readonly #requested: string;

  constructor(models: MirroredModels, owner: ModelsOwner, version: ReadyVersion, requested: string) {
    this.config = version.config;
    this.#models = models;
    this.#owner = owner;
    this.#version = version;
    this.#requested = requested;
  }

  get key(): number {
    return this.#version.key;
  }

  /** True if the client named no version. */
  get latest(): boolean {
    return this.#requested === "";
  }

  get name(): string {
    return this.#version.name;
  }

  get version(): number {
    return this.#version.version;
  }

  get labels(): ReadonlyMap<string, readonly string[]> {
    return this.#version.labels;
  }

  get directory(): string | undefined {
    const { directory, version } = this.#version;
    return directory && join(directory, String(version));
  }

  inService(): MirroredModel {
    return this.#models.has(this.#version) ? this : this.#models.pin(this.name, this.#requested);
  }

  /** The engine looks whether there is room, when the request arrives there. */
  awaitRoom(): undefined {
    return undefined;
  }

  infer(init: InferInit, onResponse: ResponseHandler): RequestHandle {
    this.#owner.assertOpen();
    return this.#owner.send(this, init, onResponse);
  }
}
