import { deflateSync, gunzipSync, gzipSync, inflateSync } from "node:zlib";
import type { Compression } from "@tritonjs/client/http";

export const compressBytes = (bytes: Uint8Array, compression: Compression): Buffer =>
  compression === "gzip" ? gzipSync(bytes) : deflateSync(bytes);

export const decompressBytes = (bytes: Uint8Array, compression: Compression): Buffer =>
  compression === "gzip" ? gunzipSync(bytes) : inflateSync(bytes);
