import type { RedisClientOptions } from "@redis/client";
import { TritonError } from "@tritonjs/protocol";
import { unbundledRequire } from "../../unbundled.js";
import { decodeOutputs, encodeOutputs } from "../encode-outputs.js";
import type { ResponseCache } from "../response-cache.js";

/** The required methods of a Redis client, which `createClient` of `redis` or `@redis/client` makes. */
export interface RedisClient {
  withTypeMapping(mapping: Record<number, unknown>): {
    get(key: string): Promise<unknown>;
    set(key: string, value: Buffer, options: { PX?: number }): Promise<unknown>;
  };
}

/** Type of a byte string: the first byte of one in Redis's protocol. */
const BLOB_STRING = "$".charCodeAt(0);

/** Options of `redisCache`. */
export interface RedisCacheOptions {
  /** `redis://` or `rediss://` with user, password and database, or `unix://` with a path. @default "redis://localhost:6379" */
  readonly url?: string;
  /** A connected client to use instead of one to `url`. Its owner has to close it. */
  readonly client?: RedisClient;
  /**
   * Prefix of each key. The keys of two models of one name and version differ in nothing else, so deployments with
   * other weights or code need another prefix.
   * @default "tritonjs:"
   */
  readonly keyPrefix?: string;
  /** Lifetime of an entry in seconds; without it, entries are kept until eviction. @default none */
  readonly ttlSeconds?: number;
  /** Longest lookup in milliseconds; after it, the request runs. @default 1000 */
  readonly lookupTimeoutMs?: number;
}

/**
 * A response cache in Redis, which any number of processes can share. While Redis cannot be reached, requests run as
 * without a cache; the connection is restored automatically.
 *
 * The server does the eviction: set `maxmemory` and `maxmemory-policy allkeys-lru` there.
 *
 * @throws TritonError UNAVAILABLE if no client is given and `@redis/client` is not installed.
 * @example
 * ```ts
 * import { redisCache } from "@tritonjs/core/redis";
 *
 * const triton = new Triton({ responseCache: redisCache({ url: "redis://cache:6379", ttlSeconds: 3600 }) });
 * ```
 */
export function redisCache(options: RedisCacheOptions = {}): ResponseCache {
  const { keyPrefix = "tritonjs:", ttlSeconds, lookupTimeoutMs = 1000 } = options;
  const own = options.client === undefined ? connect(options.url) : undefined;
  const commands = (options.client ?? own!).withTypeMapping({
    [BLOB_STRING]: Buffer,
  });
  const expiry = ttlSeconds === undefined ? {} : { PX: Math.ceil(ttlSeconds * 1000) };
  return {
    lookupTimeoutMs,
    async get(key) {
      const bytes = await commands.get(keyPrefix + key);
      return bytes instanceof Buffer ? decodeOutputs(bytes) : undefined;
    },
    async set(key, outputs) {
      await commands.set(keyPrefix + key, encodeOutputs(outputs), expiry);
    },
    close: () => own?.destroy(),
  };
}

function addressOf(url: string | undefined): RedisClientOptions {
  if (url === undefined) return {};
  return url.startsWith("unix://") ? { socket: { path: url.slice("unix://".length), tls: false } } : { url };
}

function connect(url: string | undefined) {
  const { createClient } = load();
  // Without an offline queue, a command fails at once while there is no connection.
  const client = createClient({ ...addressOf(url), disableOfflineQueue: true });
  // Each failed lookup is counted as a failure, so the connection's own error needs no report.
  client.on("error", () => {});
  client.connect().catch(() => {});
  return client;
}

function load(): typeof import("@redis/client") {
  try {
    return unbundledRequire(import.meta.url)("@redis/client") as typeof import("@redis/client");
  } catch (cause) {
    const why = TritonError.from(cause).message.split("\n")[0];
    const text = `cannot load @redis/client (${why}): install it next to @tritonjs/core`;
    throw new TritonError("UNAVAILABLE", text, { reason: "PACKAGE_NOT_INSTALLED", cause });
  }
}
