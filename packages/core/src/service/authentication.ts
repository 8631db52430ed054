import { TritonError } from "@tritonjs/protocol";
import type { Log } from "../observe/log/log.js";
import { type AccessGroup, checkGroups } from "./restrictions.js";

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

/** Authenticates requests for every transport. */
export class Authentication {
  /** Value of the header `WWW-Authenticate`. */
  readonly challenge: string;
  /** Groups for which nobody is authenticated. */
  readonly publicEndpoints: readonly AccessGroup[];
  readonly #authenticate: Authenticate;
  readonly #public: ReadonlySet<AccessGroup>;
  readonly #log: Pick<Log, "error">;

  /** @throws TritonError INVALID_ARG for an unknown group */
  constructor(authenticate: Authenticate, options: AuthenticationOptions, log: Pick<Log, "error">) {
    const { challenge = "Bearer", publicEndpoints = ["health"] } = options;
    this.challenge = challenge;
    this.publicEndpoints = publicEndpoints;
    this.#authenticate = authenticate;
    checkGroups(publicEndpoints.filter((group) => group !== "metrics"));
    this.#public = new Set(publicEndpoints);
    this.#log = log;
  }

  /** True if requests of the group need authentication. */
  guards(group: AccessGroup): boolean {
    return !this.#public.has(group);
  }

  /** @throws TritonError if the request is refused */
  async check(request: AuthenticationRequest): Promise<void> {
    let allowed: unknown;
    try {
      allowed = await this.#authenticate(request);
    } catch (thrown) {
      if (TritonError.is(thrown)) throw thrown;
      const { method, path } = request;
      const text = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
      this.#log.error(`security.authenticate failed for ${method} ${path}: ${text}`);
      throw new TritonError("INTERNAL", "internal error", { cause: thrown });
    }
    if (allowed === false) {
      throw new TritonError("UNAVAILABLE", "access denied", { reason: "PERMISSION_DENIED" });
    }
  }
}

/** Makes the authentication that the options ask for; undefined for none. */
export function createAuthentication(
  options: AuthenticationOptions | undefined,
  log: Pick<Log, "error">,
): Authentication | undefined {
  const authenticate = options?.authenticate;
  return authenticate && new Authentication(authenticate, options, log);
}
