import type { RedisClientOptions } from "@redis/client";
import type { CachedOutputs, ResponseCache } from "@tritonjs/core";
import { notLoaded, unbundledRequire } from "@tritonjs/core/internal/worker";
import {
  type DataType,
  elementByteSize,
  elementCount,
  isDataType,
  Tensor,
  TritonError,
} from "@tritonjs/protocol";

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
  /** Certificates and keys in PEM format, for `rediss://`. @default those that Node trusts, and none of its own */
  readonly tls?: {
    readonly ca?: string | Buffer;
    readonly cert?: string | Buffer;
    readonly key?: string | Buffer;
    /** Name that the certificate of the server must have. @default the host */
    readonly servername?: string;
  };
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
 * import { redisCache } from "@tritonjs/operations/redis";
 *
 * const triton = new Triton({ responseCache: redisCache({ url: "redis://cache:6379", ttlSeconds: 3600 }) });
 * ```
 */
export function redisCache(options: RedisCacheOptions = {}): ResponseCache {
  const { keyPrefix = "tritonjs:", ttlSeconds, lookupTimeoutMs = 1000 } = options;
  const own = options.client === undefined ? connect(options) : undefined;
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

function addressOf({ url, tls }: RedisCacheOptions): RedisClientOptions {
  if (url?.startsWith("unix://")) return { socket: { path: url.slice("unix://".length), tls: false } };
  return {
    ...(url === undefined ? {} : { url }),
    ...(tls === undefined ? {} : { socket: { tls: true, ...tls } }),
  };
}

function connect(options: RedisCacheOptions) {
  const { createClient } = loadRedis();
  // Without an offline queue, a command fails at once while there is no connection.
  const client = createClient({ ...addressOf(options), disableOfflineQueue: true });
  // Each failed lookup is counted as a failure, so the connection's own error needs no report.
  client.on("error", () => {});
  client.connect().catch(() => {});
  return client;
}

function loadRedis(): typeof import("@redis/client") {
  try {
    return unbundledRequire(import.meta.url)("@redis/client") as typeof import("@redis/client");
  } catch (cause) {
    throw notLoaded("@redis/client", cause, "install it next to @tritonjs/operations");
  }
}

/*
 * Binary format of outputs, for a cache outside of this process:
 *
 *   "TJC1" | length of the header, 4 bytes, little endian | header | bytes of each tensor, one after the other
 *
 * The header is JSON: [name, data type, shape, bytes] for each output.
 */

const MAGIC = Buffer.from("TJC1");
const START = MAGIC.length + 4;

type Entry = readonly [name: string, datatype: DataType, shape: readonly number[], byteLength: number];

function encodeOutputs(outputs: CachedOutputs): Buffer {
  const entries = [...outputs].map(
    ([name, { datatype, shape, bytes }]): Entry => [name, datatype, shape, bytes.byteLength],
  );
  const header = Buffer.from(JSON.stringify(entries));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(header.byteLength);
  return Buffer.concat([MAGIC, length, header, ...[...outputs.values()].map(({ bytes }) => bytes)]);
}

function decodeOutputs(bytes: Buffer): CachedOutputs {
  const start = START + (bytes.byteLength >= START ? bytes.readUInt32LE(MAGIC.length) : 0);
  if (!bytes.subarray(0, MAGIC.length).equals(MAGIC) || start > bytes.byteLength) throw unreadable();
  const outputs = new Map<string, Tensor>();
  let at = start;
  for (const [name, datatype, shape, byteLength] of readHeader(bytes.subarray(START, start))) {
    if (at + byteLength > bytes.byteLength) throw unreadable();
    outputs.set(name, Tensor.fromBytes(datatype, shape, bytes.subarray(at, at + byteLength)));
    at += byteLength;
  }
  if (at !== bytes.byteLength) throw unreadable();
  return outputs;
}

function readHeader(bytes: Buffer): readonly Entry[] {
  let header: unknown;
  try {
    header = JSON.parse(bytes.toString());
  } catch (error) {
    throw unreadable(error);
  }
  if (!Array.isArray(header) || !header.every(isEntry)) throw unreadable();
  return header;
}

function isEntry(entry: unknown): entry is Entry {
  if (!Array.isArray(entry)) return false;
  const [name, datatype, shape, byteLength] = entry as unknown[];
  if (typeof name !== "string" || typeof datatype !== "string" || !isDataType(datatype)) return false;
  if (!Array.isArray(shape) || !shape.every(isSize) || !isSize(byteLength)) return false;
  return datatype === "BYTES" || byteLength === elementCount(shape) * elementByteSize(datatype);
}

function isSize(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function unreadable(cause?: unknown): TritonError {
  return new TritonError("INTERNAL", "cannot read an entry of the response cache", { cause });
}
