import type { EndpointGroup } from "../extension/extension.js";

/** Options of a `Triton` that concern what its frontends share. */
export interface ServiceOptions {
  /** Name of the server in its metadata. @default "triton" */
  readonly id?: string;
  /** Whether the server is ready only while all models are. @default true */
  readonly strictReadiness?: boolean;
  /**
   * Whose readiness ends while a model has no instance that runs, because all have crashed and could not be restarted:
   * that of the model alone, or with `strictReadiness` also that of the server. @default "model"
   */
  readonly crashReadiness?: "model" | "server";
  /**
   * Whether a version that is loading or failed to load leaves the server ready while another version of its model
   * serves. It refines `strictReadiness`. @default false
   */
  readonly readyWithOlderVersion?: boolean;
  /**
   * Whether clients on this machine may register shared memory for inputs and outputs. Needs the package `koffi`.
   * Enable it only for clients that may read and write the data of this process. @default false
   */
  readonly allowClientSharedMemory?: boolean;
  /** Limits on the memory of requests that frontends receive, in total over all frontends. */
  readonly requestMemory?: RequestMemoryOptions;
  /**
   * Access token and the operations that need it. A frontend that is made with restrictions of its own uses those
   * instead.
   * @default a random token for shared-memory, model-repository, statistics, trace and logging
   */
  readonly security?: SecurityOptions;
}

/** Access control over all transports: PyTriton's `TritonSecurityConfig`. */
export interface SecurityOptions extends AuthenticationOptions {
  /** Token that clients send to use a restricted endpoint. @default a random one, see `serviceOf` of `@tritonjs/server` */
  readonly accessToken?: string;
  /**
   * Groups of operations that need the access token. `[]` restricts none.
   * @default shared-memory, model-repository, statistics, trace, logging
   */
  readonly restrictedEndpoints?: readonly EndpointGroup[];
  /**
   * Names under which browsers may use the HTTP frontends: `"triton.example.com"`, or `".example.com"` for that name and
   * all names below it. Requests to other names are refused on loopback addresses, and wherever an operation that
   * changes the server needs no token. IP addresses, `localhost` and names without a dot are always allowed. Pages
   * of these hosts may use operations that change the server. `true` allows all names, and pages of all sites.
   * @default []
   */
  readonly allowedHosts?: AllowedHosts;
}

/** A request whose sender is not known yet. Nothing of its body or messages has been decoded. */
export interface AuthenticationRequest {
  readonly transport: "http" | "grpc";
  /** Method of HTTP; `POST` over gRPC. */
  readonly method: string;
  /**
   * Path without query and prefix, as sent: `/v2/models/resnet/infer`. Over gRPC it names the method:
   * `/inference.GRPCInferenceService/ModelInfer`.
   */
  readonly path: string;
  /** The group of operations, the same for both transports. */
  readonly group: AccessGroup;
  /** Headers of HTTP, or the metadata of gRPC with text values. */
  readonly headers: Headers;
  /** Address of the peer, which may be a proxy. Undefined where the server does not report it, as with `fetchHandler`. */
  readonly remoteAddress: string | undefined;
}

/**
 * Decides whether the sender of a request may make it. It refuses by throwing; `false` refuses too. A `TritonError` with
 * the reason `UNAUTHENTICATED` answers 401 and UNAUTHENTICATED, and one with `PERMISSION_DENIED` answers 403 and
 * PERMISSION_DENIED. Other `TritonError`s answer the status of their code. Any other error is logged, and answers 500 and
 * INTERNAL without its text.
 */
export type Authenticate = (request: AuthenticationRequest) => void | Promise<void>;

/** Options of the authentication of requests. */
export interface AuthenticationOptions {
  /**
   * Called for each request of HTTP, and once for each call or stream of gRPC, before anything is decoded.
   * @default every client is accepted
   */
  readonly authenticate?: Authenticate;
  /** Value of the header `WWW-Authenticate` of 401. @default "Bearer" */
  readonly challenge?: string;
  /**
   * Groups for which `authenticate` is not called. The default lets probes through.
   * @default ["health"]
   */
  readonly publicEndpoints?: readonly AccessGroup[];
}

/** A group of operations, or the metrics page. */
export type AccessGroup = EndpointGroup | "metrics";

/**
 * Names under which browsers may use a server: `"triton.example.com"`, or `".example.com"` for that name and all names
 * below it. `true` allows all names, and pages of all sites.
 */
export type AllowedHosts = true | readonly string[];

/** Limits on the memory of all requests that frontends receive. */
export interface RequestMemoryOptions {
  /**
   * Bytes that all requests together may take, received and unpacked. Each counts from its first byte to its answer. A
   * request that does not fit is refused with UNAVAILABLE. A request that is alone may take as much as its frontend
   * allows.
   * @default 1 GiB, or a quarter of the memory of this machine or container if that is less
   */
  readonly byteSize?: number;
  /** Compressed requests that are unpacked at the same time; others wait in order. @default 2 */
  readonly maxDecompressions?: number;
  /** Compressed requests that may wait to be unpacked. Further requests are refused with UNAVAILABLE. @default 1024 */
  readonly maxWaitingDecompressions?: number;
  /**
   * Largest ratio of unpacked to compressed bytes of a request that unpacks to more than 8 MiB; 0 for any.
   * @default 100
   */
  readonly maxCompressionRatio?: number;
}
