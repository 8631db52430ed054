import { randomBytes } from "node:crypto";
import { TritonError } from "@tritonjs/protocol";
import type { AuthenticationOptions } from "../service/authentication.js";
import { checkGroups, type EndpointGroup, type Restrictions } from "../service/restrictions.js";

/** Access control over all transports: PyTriton's `TritonSecurityConfig`. */
export interface SecurityOptions extends AuthenticationOptions {
  /** Token that clients send to use a restricted endpoint. @default a random one, see `Triton.accessToken` */
  readonly accessToken?: string;
  /**
   * Groups of operations that need the access token. `[]` restricts none.
   * @default shared-memory, model-repository, statistics, trace, logging
   */
  readonly restrictedEndpoints?: readonly EndpointGroup[];
}

/** Header that carries the access token. Over gRPC it has the prefix `triton-grpc-protocol-`. */
const ACCESS_TOKEN_HEADER = "triton-access-token";

/** Groups that change the server, or reveal more than its models. */
const DEFAULT_RESTRICTED: readonly EndpointGroup[] = [
  "shared-memory",
  "model-repository",
  "statistics",
  "trace",
  "logging",
];

/** The access token and the restrictions of one server. */
export interface Security {
  /** Undefined if nothing is restricted and no token was given. */
  readonly accessToken: string | undefined;
  readonly restrictions: Restrictions;
}

/**
 * Fills in the defaults.
 *
 * @throws TritonError INVALID_ARG for an unknown group and for an empty token.
 */
export function resolveSecurity(options: SecurityOptions = {}): Security {
  const groups = checkGroups(options.restrictedEndpoints ?? DEFAULT_RESTRICTED);
  if (options.accessToken === "") {
    throw new TritonError("INVALID_ARG", "security.accessToken: expected a secret, got an empty string", {
      reason: "INVALID_OPTION",
    });
  }
  if (groups.length === 0) return { accessToken: options.accessToken, restrictions: {} };
  const value = options.accessToken ?? randomBytes(32).toString("base64url");
  const restriction = { header: ACCESS_TOKEN_HEADER, value };
  return {
    accessToken: value,
    restrictions: Object.fromEntries(groups.map((group) => [group, restriction])),
  };
}
