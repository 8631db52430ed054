import { firstHeader, type V2Request } from "@tritonjs/http/frontend";
import { TritonError } from "@tritonjs/protocol";
import { OpenAiError } from "../errors/openai-error.js";
import { checkOpenAiGroups, OPENAI_GROUPS, type OpenAiGroup } from "./endpoint-group.js";
import { Secret } from "./secret.js";

/** API key of clients, and the groups of endpoints that it opens. */
export interface ApiKey {
  /** The key, or `sha256:` and its hexadecimal hash, so that no file has to hold the key itself. */
  readonly key: string;
  /** Groups of endpoints that the key opens; all unless given. */
  readonly groups?: readonly OpenAiGroup[];
}

/** A header that a client must send. */
export interface HeaderRestriction {
  /** Name of the header, in any case. */
  readonly header: string;
  /** Value that the header must have. */
  readonly value: string;
}

/** Options that decide which clients may use which endpoints. */
export interface OpenAiAccessOptions {
  /** Keys that clients send as `Authorization: Bearer`; without any, no key is needed. */
  readonly apiKeys?: readonly (string | ApiKey)[];
  /** Groups that need no key; `["health"]` unless given. */
  readonly publicGroups?: readonly OpenAiGroup[];
  /**
   * Groups that need a header with a given name and value, as `--openai-restricted-api` of Triton; none unless given.
   */
  readonly restrictions?: Readonly<Partial<Record<OpenAiGroup, HeaderRestriction>>>;
}

/** Decides which clients may use which endpoints. */
export class OpenAiAccess {
  readonly #keys: readonly { readonly secret: Secret; readonly groups: ReadonlySet<OpenAiGroup> }[];
  readonly #public: ReadonlySet<OpenAiGroup>;
  readonly #headers = new Map<OpenAiGroup, { readonly header: string; readonly secret: Secret }>();

  /**
   * @throws TritonError INVALID_ARG for an unknown group, an empty key, and a restriction without a header or a value
   */
  constructor({ apiKeys = [], publicGroups = ["health"], restrictions = {} }: OpenAiAccessOptions) {
    this.#keys = apiKeys.map((given) => {
      const { key, groups = OPENAI_GROUPS } = typeof given === "string" ? { key: given } : given;
      if (typeof key !== "string" || key === "") {
        throw invalidOption("apiKeys: expected keys that are not empty, got an empty one");
      }
      checkOpenAiGroups(groups, "apiKeys.groups");
      return { secret: new Secret(key), groups: new Set(groups) };
    });
    checkOpenAiGroups(publicGroups, "publicGroups");
    this.#public = new Set(publicGroups);
    checkOpenAiGroups(Object.keys(restrictions), "restrictions");
    for (const [group, restriction] of Object.entries(restrictions)) {
      const { header, value } = restriction;
      if (!header || !value) throw invalidOption(`restrictions of '${group}': expected a header and a value`);
      this.#headers.set(group as OpenAiGroup, { header, secret: new Secret(value) });
    }
  }

  /** True if the group needs a key or a header. */
  guards(group: OpenAiGroup): boolean {
    return this.#headers.has(group) || (this.#keys.length > 0 && !this.#public.has(group));
  }

  /** @throws OpenAiError 401 for a missing or wrong key or header, 403 for a key of other groups */
  check(request: V2Request, group: OpenAiGroup): void {
    this.#checkKey(request, group);
    const restriction = this.#headers.get(group);
    if (restriction === undefined) return;
    const sent = firstHeader(request, restriction.header);
    if (sent !== undefined && restriction.secret.isEqual(sent)) return;
    // The words of Triton's OpenAI frontend.
    throw new OpenAiError(
      401,
      `This API is restricted, expecting header '${restriction.header}' with valid value`,
      { type: "authentication_error", code: "invalid_auth" },
    );
  }

  #checkKey(request: V2Request, group: OpenAiGroup): void {
    if (this.#keys.length === 0 || this.#public.has(group)) return;
    const sent = bearerOf(request);
    if (sent === undefined) {
      throw unauthorized("you did not provide an API key: expected the header 'Authorization: Bearer <key>'");
    }
    // All keys are compared, so that the time does not reveal which one fits.
    const found = this.#keys.filter(({ secret }) => secret.isEqual(sent));
    if (found.length === 0) throw unauthorized("incorrect API key provided");
    if (found.some(({ groups }) => groups.has(group))) return;
    throw new OpenAiError(403, `the API key is not for the endpoints of ${group}`, {
      code: "insufficient_permissions",
    });
  }
}

/** The token of `Authorization: Bearer`. */
export function bearerOf(request: V2Request): string | undefined {
  return /^Bearer +(\S+) *$/i.exec(firstHeader(request, "authorization") ?? "")?.[1];
}

function unauthorized(text: string): OpenAiError {
  return new OpenAiError(401, text, { code: "invalid_api_key", headers: { "www-authenticate": "Bearer" } });
}

function invalidOption(text: string): TritonError {
  return new TritonError("INVALID_ARG", text, { reason: "INVALID_OPTION" });
}
