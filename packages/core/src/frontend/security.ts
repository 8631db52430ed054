import { randomBytes } from "node:crypto";
import { TritonError } from "@tritonjs/protocol";
import { checkOptionNames } from "../config/schema/check-option-names.js";
import { keyList } from "../config/schema/key-list.js";
import type { AuthenticationOptions } from "../service/authentication.js";
import {
  type AllowedHosts,
  checkGroups,
  type EndpointGroup,
  type Restrictions,
} from "../service/restrictions.js";
import { HostRule } from "./site-guard.js";

/** Access control over all transports: PyTriton's `TritonSecurityConfig`. */
export interface SecurityOptions extends AuthenticationOptions {
  /** Token that clients send to use a restricted endpoint. @default a random one, see `Triton.accessToken` */
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

const SECURITY_OPTION_KEYS = keyList<SecurityOptions>({
  accessToken: true,
  allowedHosts: true,
  authenticate: true,
  challenge: true,
  publicEndpoints: true,
  restrictedEndpoints: true,
});

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
  readonly allowedHosts: AllowedHosts;
}

/**
 * Fills in the defaults.
 *
 * @throws TritonError INVALID_ARG for an unknown option or group, an empty token, and a host that is not a name.
 */
export function resolveSecurity(options: SecurityOptions = {}): Security {
  checkOptionNames("security", options, SECURITY_OPTION_KEYS);
  const groups = checkGroups(options.restrictedEndpoints ?? DEFAULT_RESTRICTED);
  if (options.accessToken === "") {
    throw new TritonError("INVALID_ARG", "security.accessToken: expected a secret, got an empty string", {
      reason: "INVALID_OPTION",
    });
  }
  const { allowedHosts = [] } = options;
  // Checks the names.
  new HostRule(allowedHosts);
  if (groups.length === 0) return { accessToken: options.accessToken, restrictions: {}, allowedHosts };
  const value = options.accessToken ?? randomBytes(32).toString("base64url");
  const restriction = { header: ACCESS_TOKEN_HEADER, value };
  return {
    accessToken: value,
    restrictions: Object.fromEntries(groups.map((group) => [group, restriction])),
    allowedHosts,
  };
}
