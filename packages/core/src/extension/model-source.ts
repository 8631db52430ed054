import { errorFor, type ModelIndexEntry, type TritonError } from "@tritonjs/protocol";
import type { ModelRegistry } from "../model/registry.js";
import type { RegisteredVersion } from "../model/version-status.js";

/** When models of a source load and unload: at the start only, when their files change, or on request. */
export type ModelControlMode = "none" | "poll" | "explicit";

/** Parameters of a load that replace what the source has. */
export interface LoadParameters {
  /** The configuration in JSON, instead of the model's own. */
  readonly config?: string | undefined;
  /** Files of the model by path (`1/model.onnx`), instead of its own files. Requires `config`. */
  readonly files?: ReadonlyMap<string, Uint8Array> | undefined;
}

/** Parameters of an unload. */
export interface UnloadParameters {
  /** Also unload the members that no other model needs and that were not loaded by their own names. */
  readonly unloadDependents?: boolean | undefined;
}

/** Loading of the models that are in service from the start. */
export interface StartUp {
  /** True until the start has ended, with success or not. */
  readonly underWay: boolean;
  /** Whether the start failed before any model could be read. The server then runs, but is never ready. */
  readonly failed: boolean;
  /** Resolves when the start has ended, with success or not. */
  readonly over: Promise<void>;
  /** Resolves when the start succeeds, or when its failure is allowed. @throws TritonError that names all failures */
  succeeded(): Promise<void>;
}

/**
 * Models that come and go while the server runs, besides those that the program binds: Triton's model control. A server
 * has one source at most, as the part `models` of an extension. The source makes versions with `ExtensionServer.create`,
 * and adds them to the registry.
 */
export interface ModelSource {
  readonly controlMode: ModelControlMode;
  /** True if models of several places may have one name. */
  readonly namespacing: boolean;
  readonly startUp: StartUp;
  /** True if the source has a model of this name, so that the program cannot bind one. */
  has(name: string): boolean;
  /** True if some model has no version that can be created. The server is then not ready. */
  readonly lacksVersions: boolean;
  /** Why a model cannot be in service; undefined for models that can, and for unknown ones. */
  problemOf(name: string): string | undefined;
  /** Rows of the repository index: models of the source and bound ones, with their present and past versions. */
  index(onlyReady: boolean): Promise<ModelIndexEntry[]>;
  /**
   * Loads or reloads a model. Resolves once all its versions are in service; `removed` resolves when the instances that
   * it no longer has are released.
   *
   * @param fromClient whether the parameters came over the network. The source decides which it takes
   * @throws TritonError UNAVAILABLE unless models are loaded on request, INTERNAL or INVALID_ARG for a model that cannot
   * be loaded
   */
  load(
    name: string,
    parameters?: LoadParameters,
    fromClient?: boolean,
  ): Promise<{ readonly removed: Promise<void> }>;
  /**
   * Takes a model out of service. Resolves when no version takes requests any more; `ended` resolves when the requests in
   * flight are answered.
   *
   * @throws TritonError UNAVAILABLE unless models are loaded on request
   */
  unload(name: string, parameters?: UnloadParameters): Promise<{ readonly ended: Promise<void> }>;
  /**
   * Adds a place of models, which load on request.
   *
   * @param modelNames other names for its models, by the names in the place
   * @throws TritonError UNAVAILABLE unless models are loaded on request, INVALID_ARG for a bad place, ALREADY_EXISTS for
   * one that is registered
   */
  register(path: string, modelNames?: Readonly<Record<string, string>>): Promise<void>;
  /** Removes a registered place. Its models that are in service stay so. Throws as {@link register}. */
  unregister(path: string): void;
  /** The program has bound a model, for which others may have waited. */
  bound(): void;
  /** A readiness request was answered: looks after the places of models in the background. */
  checkPresence(): void;
}

/** Row of the repository index for one version. */
export function indexEntry(one: RegisteredVersion): ModelIndexEntry {
  const { name, version, state, reason, crashReason } = one;
  if (state === "READY" && crashReason !== undefined) {
    return { name, version: String(version), state: "UNAVAILABLE", reason: crashReason };
  }
  return { name, version: String(version), state, ...(reason === "" ? {} : { reason }) };
}

/** The error for a load or an unload where models do not load on request. The text is Triton's. */
export function controlDisabled(): TritonError {
  return errorFor(
    "MODEL_CONTROL_DISABLED",
    "explicit model load / unload is not allowed if polling is enabled",
  );
}

const STARTED: StartUp = {
  underWay: false,
  failed: false,
  over: Promise.resolve(),
  succeeded: () => Promise.resolve(),
};

/** The source of a server whose models are all bound by the program. */
export function boundModels(registry: ModelRegistry): ModelSource {
  return {
    controlMode: "none",
    namespacing: false,
    startUp: STARTED,
    lacksVersions: false,
    has: () => false,
    problemOf: () => undefined,
    async index(onlyReady) {
      const names = [...new Set(registry.bound().map(({ name }) => name))].sort();
      const rows = names.flatMap((name) => registry.versions(name, "").map(indexEntry));
      return onlyReady ? rows.filter(({ state }) => state === "READY") : rows;
    },
    load: () => Promise.reject(controlDisabled()),
    unload: () => Promise.reject(controlDisabled()),
    register: () => Promise.reject(controlDisabled()),
    unregister() {
      throw controlDisabled();
    },
    bound() {},
    checkPresence() {},
  };
}
