import type { ModelConfig } from "@tritonjs/protocol";
import type { Gpus } from "../config/gpus.js";
import type { ParameterTable } from "../instance/backend.js";
import type { ModelPlan } from "../model/model-server.js";
import type { ModelVersion, VersionRouter } from "../model/model-version.js";
import type { ModelRegistry } from "../model/registry.js";
import type { Residence, TenantModel } from "../model/residence.js";
import type { Log } from "../observe/log.js";
import type { CollectedFamily } from "../observe/metric-families.js";
import type { RequestTracer } from "../observe/request-trace.js";
import type { AroundScheduling, SchedulingSettings } from "../scheduler/around-scheduling.js";
import type { Batcher } from "../scheduler/batcher.js";
import type { Clock } from "../system/clock.js";
import type { HostPolicies } from "../system/host-policy.js";
import type { ModelSource } from "./model-source.js";

/**
 * An extension of a server: `new Triton({ extensions: [...] })`. It adds a feature beyond running models, and comes from
 * this library or from a program.
 *
 * @example
 * ```ts
 * const hello: Extension = {
 *   name: "hello",
 *   attach: ({ log }) => ({ start: () => log("hello").info("the server starts") }),
 * };
 * await using triton = new Triton({ extensions: [hello] });
 * ```
 */
export interface Extension {
  /** Name in messages and in the log. */
  readonly name: string;
  /** Parameters of configurations that the extension reads, and what their texts name; `audit_*` for all that begin so. */
  readonly parameters?: ParameterTable;
  /**
   * Lists problems with the parameters of a configuration. Tools that check configurations ask it, without a server.
   * @default none
   */
  problems?(config: ModelConfig): readonly string[];
  /**
   * GPUs on which the server may place instances, before any extension is attached. Those of the first extension that
   * has some count.
   *
   * @param log log of a part
   * @throws TritonError INVALID_ARG for options that the server cannot have
   */
  gpus?(log: ExtensionServer["log"]): Gpus;
  /**
   * Called once, while the server is made, before it has any model. An extension belongs to one server.
   *
   * @throws TritonError INVALID_ARG for options that the server cannot have
   */
  attach(server: ExtensionServer): ExtensionParts;
}

/** The server as its extensions see it. */
export interface ExtensionServer {
  /** Clock of every wait and measurement. */
  readonly clock: Clock;
  /** The models in service, and the look-ups of the protocol. */
  readonly registry: ModelRegistry;
  /** GPUs that instance groups may name. */
  readonly gpus: Gpus;
  /** Settings for instances by policy or device. */
  readonly hostPolicies: HostPolicies;
  /** Settings that decide about batches. */
  readonly scheduling: SchedulingSettings;
  /** Log of a part, whose name each line has. */
  log(part: string): Log;
  /**
   * Makes a version of a model, which begins to load. Add it to the registry to let requests find it.
   *
   * @throws TritonError INVALID_ARG for a configuration that cannot be served
   */
  create(plan: ModelPlan): ModelVersion;
  /**
   * Divides the requests to a model that name no version among its versions; undefined ends that. Call it again when
   * `router.version` changes.
   *
   * @param namespace of the model; empty unless the server has namespaces
   * @example
   * ```ts
   * // Sends a tenth of the requests to version 2.
   * server.route("resnet", "", {
   *   version: 1,
   *   route: (request, found) =>
   *     (Math.random() < 0.1 ? server.registry.readyVersion("resnet", "", 2) : undefined) ?? found,
   * });
   * ```
   */
  route(name: string, namespace: string, router: VersionRouter | undefined): void;
  /** True for a model that is not in memory when it comes into service, as an extension decides. */
  startsOnDisk(config: ModelConfig): boolean;
  /** What the parameters of configurations name that all extensions read. */
  parameters(): ParameterTable;
}

/** A version of a model that an extension may give a batcher. */
export interface UnbatchedModel extends Pick<ModelPlan, "name" | "version" | "config"> {
  /** True if its requests run in groups by a key (`batchBy`), so that it cannot have another batcher. */
  readonly isGrouped: boolean;
  /** Its own batcher, in whose place the extension may give it one of the same name. */
  readonly batcher?: Batcher | undefined;
}

/**
 * What an extension adds to a server, by seam. All members are optional.
 *
 * ```
 * attach --> start --> [models load, requests run] --> drain --> [requests in flight end] --> close
 * ```
 */
export interface ExtensionParts {
  // Service.
  /**
   * Called when the server is complete. `triton.ready()` and `triton.serve()` wait for its promise, and fail with its
   * error.
   */
  start?(): void | Promise<void>;
  /** Called when the server begins to close: it changes no model from now on. Requests in flight still run. */
  drain?(): void | Promise<void>;
  /** Called once the last model is out of service. Releases everything that the extension has. */
  close?(): void | Promise<void>;
  /** Metrics of the extension, which are read when the page is scraped. */
  families?(): readonly CollectedFamily[];
  /** Operations that the management of the server gets. Frontends serve them without knowing the extension. */
  readonly routes?: readonly ManagementRoute[];
  /** What pages for operators, such as the dashboard, show of the extension. */
  readonly page?: ExtensionPage;

  // Batcher.
  /** The batcher of a model whose configuration, or whose server, asks for one. Called before each version is made. */
  batcher?(model: UnbatchedModel): Batcher | undefined;
  /** Stands around the scheduling of a version, or of its next configuration. The first extension that does so wins. */
  around?(plan: ModelPlan): AroundScheduling | undefined;

  // Models.
  /**
   * Looks at each plan before a version is made of it, and before a version that serves takes its settings. Returns the
   * plan, or a changed one.
   */
  adapt?(plan: ModelPlan): ModelPlan;
  /** Models that load and unload while the server runs. At most one extension of a server has them. */
  readonly models?: ModelSource;

  // Observe.
  /** Follows requests to their answers. The extensions of a server may have any number of tracers. */
  readonly tracer?: RequestTracer;

  // Residence.
  /** Decides when the instances of a version are in memory. Undefined for a version that is always there. */
  admit?(model: TenantModel): Residence | undefined;
  /** True for a model whose versions `admit` keeps on disk until they are needed. Such a model is read without opening it. */
  startsOnDisk?(config: ModelConfig): boolean;
}

/** Group of operations that access control opens or closes as one, with Triton's names. */
export type EndpointGroup = (typeof ENDPOINT_GROUPS)[number];

/** All groups of operations that can be restricted. */
export const ENDPOINT_GROUPS = [
  "health",
  "metadata",
  "inference",
  "shared-memory",
  "model-config",
  "model-repository",
  "statistics",
  "trace",
  "logging",
] as const;

/**
 * A path of the management, and what it does.
 *
 * @example
 * ```ts
 * const route: ManagementRoute = {
 *   path: "models/{model}/recent",
 *   group: "statistics",
 *   get: { id: "recentRequests", summary: "The last requests of a model", run: ({ names }) => recent.get(names.model!) },
 * };
 * // GET /v2/models/resnet/recent
 * ```
 */
export interface ManagementRoute {
  /** Path below `/v2/`. A name in braces stands for one part of the path: `models/{model}/recent`. */
  readonly path: string;
  readonly group: EndpointGroup;
  readonly get?: ManagementOperation;
  readonly post?: ManagementOperation;
  /** Largest body in bytes. @default 1 MiB */
  readonly maxBodyBytes?: number;
  /**
   * Parameter of gRPC's `RepositoryModelLoad` that reaches the route, for the group `model-repository` and a path whose
   * only name is `model`. Its value is the body as JSON text, and `{}` stands for `get`. The answer is in the trailer
   * `tritonjs-<parameter>-bin`. @default none
   */
  readonly loadParameter?: string;
}

/** One method of a {@link ManagementRoute}. */
export interface ManagementOperation {
  /** Name in the OpenAPI document, unlike all others: `recentRequests`. */
  readonly id: string;
  /** What it does, in a few words. */
  readonly summary: string;
  /** JSON schema of the body. @default no body, or any */
  readonly body?: object;
  /** JSON schema of the answer. @default any */
  readonly answer?: object;
  /**
   * Does what a client asks for.
   *
   * @returns plain JSON; bytes, for a file; undefined for an answer without a body
   * @throws TritonError whose code is the status of the answer
   */
  run(request: ManagementRequest): unknown;
}

/** A request to a {@link ManagementRoute}. It can be cloned: it may come from another thread. */
export interface ManagementRequest {
  /** The parts of the path by their names, decoded. */
  readonly names: Readonly<Record<string, string>>;
  /** The body, a JSON object; empty for GET. */
  readonly body: Readonly<Record<string, unknown>>;
}

/** What pages for operators show of an extension. */
export interface ExtensionPage {
  /** Plain JSON, which is read about once a second while somebody looks. Undefined while there is nothing to show. */
  data(): unknown;
  /**
   * A module for browsers that shows the data, in one file that imports nothing. Its default export gets the tools of the
   * page, and returns a component of Preact with the property `data`. @default the data as JSON
   */
  readonly view?: URL;
  /** A file that operators can load from the page. */
  file?(): Uint8Array;
}
