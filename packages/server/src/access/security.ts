import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import type {
  AccessGroup,
  AllowedHosts,
  EndpointGroup,
  SecurityOptions,
} from "@tritonjs/core/internal/server";
import { assertOptions, errorFor, optionTypes, type TritonError } from "@tritonjs/protocol";
import { AccessGate, checkGroups, type Restrictions } from "./access-control.js";

const SECURITY_OPTION_TYPES = optionTypes<SecurityOptions>({
  accessToken: "string",
  allowedHosts: ["array", "boolean"],
  authenticate: "function",
  challenge: "string",
  publicEndpoints: "array",
  restrictedEndpoints: "array",
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

interface Security {
  /** Undefined if nothing is restricted and no token was given. */
  readonly accessToken: string | undefined;
  readonly restrictions: Restrictions;
  readonly allowedHosts: AllowedHosts;
}

/** Fills in the defaults. Throws for an unknown option or group, an empty token, and a host that is not a name. */
export function resolveSecurity(options: SecurityOptions = {}): Security {
  assertOptions("security", options, SECURITY_OPTION_TYPES);
  const groups = checkGroups(options.restrictedEndpoints ?? DEFAULT_RESTRICTED);
  if (options.accessToken === "") {
    throw errorFor("INVALID_OPTION", "security.accessToken: expected a secret, got an empty string");
  }
  const { allowedHosts = [] } = options;
  // Checks the names.
  new HostRule(allowedHosts);
  if (groups.length === 0) return { accessToken: options.accessToken, restrictions: {}, allowedHosts };
  const value = options.accessToken ?? randomBytes(32).toString("base64url");
  const restriction = { header: ACCESS_TOKEN_HEADER, value, isGenerated: options.accessToken === undefined };
  return {
    accessToken: value,
    restrictions: Object.fromEntries(groups.map((group) => [group, restriction])),
    allowedHosts,
  };
}

/*
 * A page of any site can send requests to every server that the browser of its visitor reaches: those on the visitor's
 * machine and in the visitor's network. Two rules stop such pages.
 *
 *   rebinding   evil.example resolves to 127.0.0.1, so the page and the server have one origin. The page may read
 *               answers, but the header Host names evil.example: names are checked against a list.
 *   forgery     the page posts text to http://localhost:8000. The browser asks nobody before, and sends Origin or
 *               Sec-Fetch-Site with it: requests from other sites are refused. The page cannot read the answer.
 *
 * Pages can neither forge nor omit Host, Origin and headers that begin with Sec-. Clients other than browsers send
 * neither Origin nor Sec-Fetch-Site.
 */

/** Names of the machine itself, which containers resolve. */
const OWN_NAMES: readonly string[] = ["host.docker.internal", "host.containers.internal"];

/** Decides which names of a server the requests of browsers may have. */
export class HostRule {
  readonly #any: boolean;
  readonly #names: ReadonlySet<string>;
  readonly #configured: ReadonlySet<string>;
  /** Suffixes with their leading dot. */
  readonly #suffixes: readonly string[];

  constructor(allowed: AllowedHosts = []) {
    this.#any = allowed === true;
    const names = allowed === true ? [] : checkedNames(allowed);
    const exact = names.filter((name) => !name.startsWith("."));
    this.#suffixes = names.filter((name) => name.startsWith("."));
    this.#configured = new Set([...exact, ...this.#suffixes.map((suffix) => suffix.slice(1))]);
    this.#names = new Set([...this.#configured, ...OWN_NAMES, hostname().toLowerCase()]);
  }

  /**
   * True for a request to an allowed name, an IP address, a name without a dot, or without a name. An attack needs a name
   * that the attacker controls, and names of the public DNS have a dot.
   *
   * @param header value of the header `Host`
   */
  allows(header: string | undefined): boolean {
    if (header === undefined || header === "" || this.#any) return true;
    const name = nameOf(header);
    return (
      name !== undefined &&
      (!name.includes(".") ||
        isAddress(name) ||
        this.#names.has(name) ||
        name.endsWith(".localhost") ||
        this.#hasSuffix(name))
    );
  }

  /** True for an origin whose host the program has named. */
  allowsOrigin(origin: string): boolean {
    if (this.#any) return true;
    const { hostname: name } = URL.canParse(origin) ? new URL(origin) : { hostname: "" };
    return name !== "" && (this.#configured.has(name) || this.#hasSuffix(name));
  }

  /** Text of the refusal of a request to another name; undefined for an allowed one. */
  fault(header: string | undefined): string | undefined {
    if (this.allows(header)) return undefined;
    return (
      `requests to the host '${header}' are refused: expected localhost, an IP address or an allowed name; to allow ` +
      "it, list it in security.allowedHosts (tritonjs serve: --allowed-host)"
    );
  }

  #hasSuffix(name: string): boolean {
    return this.#suffixes.some((suffix) => name.endsWith(suffix));
  }
}

function checkedNames(allowed: readonly string[]): string[] {
  if (!Array.isArray(allowed)) throw badHost(allowed);
  return allowed.map((entry) => {
    if (typeof entry === "string" && /^\.?[\w-]+(\.[\w-]+)*$/.test(entry)) return entry.toLowerCase();
    throw badHost(entry);
  });
}

function badHost(entry: unknown): TritonError {
  const text = `security.allowedHosts: expected true or names such as "triton.example.com", got '${String(entry)}'`;
  return errorFor("INVALID_OPTION", text);
}

/** The name or address in a `Host` header, without the port and a final dot; undefined for other texts. */
function nameOf(header: string): string | undefined {
  const [, name] = /^(\[[\da-f:.%]+\]|[\w.-]+)(?::\d*)?$/i.exec(header) ?? [];
  return name?.toLowerCase().replace(/\.$/, "");
}

function isAddress(name: string): boolean {
  return name.startsWith("[") || /^\d+(\.\d+){3}$/.test(name);
}

/** True for an address to listen on that only this machine reaches. */
export function isLoopback(address: string): boolean {
  return /^(localhost|.+\.localhost|::1|(::ffff:)?127(\.\d+){3})$/i.test(address);
}

/** Groups of operations that change the server. Reading their settings belongs to them. */
const MANAGEMENT: ReadonlySet<AccessGroup> = new Set([
  "model-repository",
  "shared-memory",
  "trace",
  "logging",
]);

/** The place of a {@link SiteGuard}. */
export interface SiteGuardOptions {
  /** Names of the server, and the groups of operations that a token closes: those of the service. */
  readonly service: { readonly allowedHosts?: AllowedHosts; readonly restrictions: Restrictions };
  /** The restrictions of the frontend, if it has its own. */
  readonly restrictions?: Restrictions | undefined;
  /** Origins whose pages may change the server: those that CORS lists; none unless given. */
  readonly lists?: ((origin: string) => boolean) | undefined;
}

/** Keeps pages of other sites from operations that change the server and that no token closes. */
export class SiteGuard {
  readonly #hosts: HostRule;
  readonly #gate: AccessGate;
  readonly #lists: (origin: string) => boolean;

  constructor({ service, restrictions, lists = () => false }: SiteGuardOptions) {
    this.#hosts = new HostRule(service.allowedHosts);
    this.#gate = new AccessGate(restrictions ?? service.restrictions);
    this.#lists = lists;
  }

  /** True if requests of the group have to be checked: it changes the server, and no token closes it. */
  guards(group: AccessGroup): boolean {
    return MANAGEMENT.has(group) && !this.#gate.guards(group);
  }

  /**
   * Text of the refusal of a request that a page of another site makes; undefined if the request may continue. A
   * restricted group needs a secret, which such a page does not have: {@link AccessGate} decides about it alone.
   *
   * @param request its method, and `Access-Control-Allow-Origin` of the answer where the application around the routes
   * has decided about it
   * @param header value of a header by its lower-case name
   */
  fault(
    request: { readonly method: string; readonly grantedOrigin?: string | undefined },
    header: (name: string) => string | undefined,
    group: AccessGroup,
  ): string | undefined {
    if (!this.guards(group)) return undefined;
    const origin = header("origin");
    const site = header("sec-fetch-site");
    const isBrowser = origin !== undefined || site !== undefined;
    if (!isBrowser && !readsAsBrowser(header)) return undefined;
    const host = header("host");
    const hostFault = this.#hosts.fault(host);
    if (hostFault !== undefined) return hostFault;
    if (!isBrowser || request.method === "GET" || request.method === "HEAD") return undefined;
    if (origin !== undefined && this.#trusts(origin, request.grantedOrigin)) return undefined;
    if (isForeign(origin, site, host)) {
      return (
        `requests from pages of ${origin ?? "other sites"} are refused: to allow them, list the origin in the option ` +
        "cors or its host in security.allowedHosts (tritonjs serve: --http-cors-origin, --allowed-host)"
      );
    }
    const type = header("content-type");
    if (type === undefined || !isSimple(type)) return undefined;
    return `requests of pages that change the server: expected the content type application/json, got '${type}'`;
  }

  #trusts(origin: string, granted: string | undefined): boolean {
    return granted === origin || this.#lists(origin) || this.#hosts.allowsOrigin(origin);
  }
}

/**
 * True for a request that a page of another site makes. Browsers say so with Sec-Fetch-Site, except to servers without
 * encryption on other machines; then the origin must be the host.
 *
 * @param site value of the header `Sec-Fetch-Site`
 */
export function isForeign(
  origin: string | undefined,
  site: string | undefined,
  host: string | undefined,
): boolean {
  if (site !== undefined) return site !== "same-origin" && site !== "none";
  return origin !== undefined && (!URL.canParse(origin) || new URL(origin).host !== host?.toLowerCase());
}

/** Browsers always send Accept-Language. `fetch` of Node does too, but with Sec-Fetch-Mode alone. */
function readsAsBrowser(header: (name: string) => string | undefined): boolean {
  return header("accept-language") !== undefined && header("sec-fetch-mode") === undefined;
}

/** True for a content type that browsers send to other sites without asking first. */
function isSimple(type: string): boolean {
  return /^\s*(text\/plain|application\/x-www-form-urlencoded|multipart\/form-data)\s*(;|$)/i.test(type);
}
