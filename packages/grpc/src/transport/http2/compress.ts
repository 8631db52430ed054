import { promisify } from "node:util";
import { deflate, gzip } from "node:zlib";
import type { CompressionLevel } from "./transport-options.js";

const encoders = { gzip: promisify(gzip), deflate: promisify(deflate) };

/** zlib's level for each name. */
const LEVELS: Readonly<Record<Exclude<CompressionLevel, "none">, number>> = { low: 1, medium: 6, high: 9 };

/** Size from which messages are compressed, in bytes. */
const WORTH_IT_BYTES = 1024;

/** Compresses messages with an encoding that the client accepts. */
export interface Compressor {
  readonly encoding: keyof typeof encoders;
  /** The compressed message; undefined when it would not be smaller. */
  compress(parts: readonly Uint8Array[]): Promise<Buffer | undefined>;
}

/** The compressor for a client that accepts these encodings; undefined for none. */
export function compressorFor(
  level: CompressionLevel,
  acceptEncoding: string | undefined,
): Compressor | undefined {
  if (level === "none" || acceptEncoding === undefined) return undefined;
  const accepted = acceptEncoding.split(",").map((name) => name.trim());
  const encoding = (["gzip", "deflate"] as const).find((name) => accepted.includes(name));
  if (encoding === undefined) return undefined;
  const options = { level: LEVELS[level] };
  return {
    encoding,
    async compress(parts) {
      const bytes = Buffer.concat(parts);
      if (bytes.length < WORTH_IT_BYTES) return undefined;
      const compressed = await encoders[encoding](bytes, options);
      return compressed.length < bytes.length ? compressed : undefined;
    },
  };
}
