import { deflateSync, gunzipSync, gzipSync, inflateSync } from "node:zlib";

/** Encoding of request or response bodies, and of gRPC messages. */
export type Compression = "gzip" | "deflate";

export const compressBytes = (bytes: Uint8Array, compression: Compression): Buffer =>
  compression === "gzip" ? gzipSync(bytes) : deflateSync(bytes);

export const decompressBytes = (bytes: Uint8Array, compression: Compression): Buffer =>
  compression === "gzip" ? gunzipSync(bytes) : inflateSync(bytes);
