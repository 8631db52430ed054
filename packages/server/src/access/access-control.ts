import { createHash, timingSafeEqual } from "node:crypto";
import {
  type AccessGroup,
  type Authenticate,
  type AuthenticationOptions,
  type AuthenticationRequest,
  ENDPOINT_GROUPS,
  type EndpointGroup,
  type Log,
} from "@tritonjs/core/internal/server";
import { errorFor, TritonError } from "@tritonjs/protocol";

/** Header that a client must send to use a group of operations. */
export interface Restriction {
  /** Name of the header. Over gRPC it has the prefix `triton-grpc-protocol-`. */
  readonly header: string;
  /** Exact value of the header. */
  readonly value: string;
  /** Added to the text of a refusal: how the operator can open the group. @default nothing */
  readonly hint?: string;
  /** True for a value that was made at random, so that clients outside of this program cannot know it. @default false */
  readonly isGenerated?: boolean;
}

/** The restricted groups. All others are open. */
export type Restrictions = Readonly<Partial<Record<EndpointGroup, Restriction>>>;

export function checkGroups(names: readonly string[]): EndpointGroup[] {
  const known = (name: string): name is EndpointGroup => ENDPOINT_GROUPS.some((group) => group === name);
  const unknown = names.filter((name) => !known(name)).sort();
  if (unknown.length > 0) {
    const valid = [...ENDPOINT_GROUPS].sort().join(", ");
    const text = `Invalid endpoint names: ${unknown.join(", ")}. Valid endpoints are: ${valid}`;
    throw errorFor("INVALID_OPTION", text);
  }
  return names.filter(known);
}

/** Decides which callers may use which group of operations, for every transport. */
export class AccessGate {
  readonly #guards = new Map<
    AccessGroup,
    { readonly header: string; readonly digest: Buffer; readonly hint: string }
  >();

  /**
   * @throws TritonError INVALID_ARG for an unknown group, which would stay open, and for a restriction without a header
   * or a value.
   */
  constructor(restrictions: Restrictions) {
    for (const group of checkGroups(Object.keys(restrictions))) {
      const restriction = restrictions[group];
      if (restriction === undefined) continue;
      const { header, value, hint = "" } = restriction;
      if (!header || !value) {
        const text = `restriction of '${group}': expected a header and a value, got header '${header}'`;
        throw errorFor("INVALID_OPTION", value ? text : `${text} without a value`);
      }
      this.#guards.set(group, { header, digest: digestOf(value), hint: hint && ` (${hint})` });
    }
  }

  /** True if the group is restricted. */
  guards(group: AccessGroup): boolean {
    return this.#guards.has(group);
  }

  /** Hint that a refusal of the group adds to its text; empty without a hint. */
  hint(group: AccessGroup): string {
    return this.#guards.get(group)?.hint ?? "";
  }

  /**
   * Names the header that the caller lacks, or undefined if the caller may use the group. The time that the check takes
   * reveals neither where two values differ nor the length of the right one.
   *
   * @param sent returns the value of a header of the caller; header names are those of the restriction
   */
  missingHeader(group: AccessGroup, sent: (header: string) => string | undefined): string | undefined {
    const guard = this.#guards.get(group);
    if (guard === undefined) return undefined;
    const value = sent(guard.header);
    if (value !== undefined && timingSafeEqual(digestOf(value), guard.digest)) return undefined;
    return guard.header;
  }
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
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
      throw errorFor("PERMISSION_DENIED", "access denied");
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
