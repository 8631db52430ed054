import { createHash, timingSafeEqual } from "node:crypto";
import type { AccessGroup } from "@tritonjs/core/types";
import { firstHeader, headersOf, type V2Request } from "@tritonjs/http/frontend";
import { errorFor } from "@tritonjs/protocol";
import { AccessGate, type InferenceService } from "@tritonjs/server";
import { describeError, OpenAiError } from "./openai-error.js";

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
        throw errorFor("INVALID_OPTION", "apiKeys: expected keys that are not empty, got an empty one");
      }
      checkGroups(groups, "apiKeys.groups");
      return { secret: new Secret(key), groups: new Set(groups) };
    });
    checkGroups(publicGroups, "publicGroups");
    this.#public = new Set(publicGroups);
    checkGroups(Object.keys(restrictions), "restrictions");
    for (const [group, restriction] of Object.entries(restrictions)) {
      const { header, value } = restriction;
      if (!header || !value)
        throw errorFor("INVALID_OPTION", `restrictions of '${group}': expected a header and a value`);
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
    const text = `This API is restricted, expecting header '${restriction.header}' with valid value`;
    throw new OpenAiError(401, text, { type: "authentication_error", code: "invalid_auth" });
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
    const text = `the API key is not for the endpoints of ${group}`;
    throw new OpenAiError(403, text, { code: "insufficient_permissions" });
  }
}

function bearerOf(request: V2Request): string | undefined {
  return /^Bearer +(\S+) *$/i.exec(firstHeader(request, "authorization") ?? "")?.[1];
}

function unauthorized(text: string): OpenAiError {
  return new OpenAiError(401, text, { code: "invalid_api_key", headers: { "www-authenticate": "Bearer" } });
}

/** Groups of endpoints that can be restricted, with the names of Triton's OpenAI frontend. */
const OPENAI_GROUPS = ["inference", "model-repository", "metrics", "health"] as const;

/**
 * A group of endpoints: `inference` generates and embeds, `model-repository` is all of `/v1/models`, `metrics` and
 * `health` are the two pages.
 */
export type OpenAiGroup = (typeof OPENAI_GROUPS)[number];

/**
 * Checks that all names are groups.
 *
 * @throws TritonError INVALID_ARG for an unknown group, which would stay open
 */
function checkGroups(names: readonly string[], option: string): void {
  for (const name of names) {
    if (OPENAI_GROUPS.some((group) => group === name)) continue;
    throw errorFor("INVALID_OPTION", `${option}: expected one of ${OPENAI_GROUPS.join(", ")}, got '${name}'`);
  }
}

const HASHED = /^sha256:([0-9a-f]{64})$/i;

/** A secret of which only the hash is kept. */
export class Secret {
  readonly #digest: Buffer;

  /** @param text the secret, or `sha256:` and the hexadecimal hash of it */
  constructor(text: string) {
    const [, hash] = HASHED.exec(text) ?? [];
    this.#digest = hash === undefined ? digestOf(text) : Buffer.from(hash, "hex");
  }

  /** Compares in constant time, which reveals neither where two texts differ nor the length of the right one. */
  isEqual(text: string): boolean {
    return timingSafeEqual(digestOf(text), this.#digest);
  }
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

/** Applies the `security` of the `Triton` to a request, as all frontends do. */
export class ServiceAccess {
  readonly #gate: AccessGate;

  constructor(private readonly service: InferenceService) {
    this.#gate = new AccessGate(service.restrictions);
  }

  /** True if requests of the group have to be checked. */
  guards(group: AccessGroup): boolean {
    return this.#gate.guards(group) || this.service.authentication?.guards(group) === true;
  }

  /**
   * Clients of OpenAI can send the access token as their API key.
   *
   * @throws OpenAiError 401 or 403, and the errors of `security.authenticate`
   */
  async check(request: V2Request, group: AccessGroup): Promise<void> {
    const { authentication } = this.service;
    if (authentication?.guards(group)) {
      const { method, path, remoteAddress } = request;
      const headers = headersOf(request);
      try {
        await authentication.check({ transport: "http", method, path, group, headers, remoteAddress });
      } catch (thrown) {
        const { status, message } = describeError(request, thrown);
        if (status !== 401) throw thrown;
        throw new OpenAiError(401, message, {
          code: "unauthenticated",
          headers: { "www-authenticate": authentication.challenge },
        });
      }
    }
    const missing = this.#gate.missingHeader(
      group,
      (name) => firstHeader(request, name) ?? bearerOf(request),
    );
    if (missing === undefined) return;
    const text = `This API is restricted, expecting header '${missing}'`;
    throw new OpenAiError(403, text, { code: "access_restricted" });
  }
}
