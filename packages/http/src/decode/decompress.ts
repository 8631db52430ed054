import { promisify } from "node:util";
import { inflate as inflateCallback, inflateRaw as inflateRawCallback } from "node:zlib";
import { TritonError } from "@tritonjs/core";
import { gzipDataStart } from "./gzip-header.js";

const inflate = promisify(inflateCallback);
const inflateRaw = promisify(inflateRawCallback);

/** How a request body may be compressed. */
export type RequestEncoding = "identity" | "gzip" | "deflate";

/** The compression that `Content-Encoding` names; undefined for any but gzip and deflate. */
export function requestEncoding(header: string | undefined): RequestEncoding | undefined {
  if (header === undefined || header === "" || header === "identity") return "identity";
  return header === "gzip" || header === "deflate" ? header : undefined;
}

/**
 * Undoes the compression of a request body. Which of gzip and deflate it is, is read off the body itself, and what
 * follows the compressed data is ignored.
 *
 * @throws TritonError INVALID_ARG for no body, a broken one, and one that becomes larger than `maxBytes`.
 */
export async function decompress(
  body: Uint8Array,
  encoding: Exclude<RequestEncoding, "identity">,
  maxBytes: number,
): Promise<Uint8Array> {
  if (body.length === 0) throw new TritonError("INVALID_ARG", "nothing to be decompressed");
  const start = gzipDataStart(body);
  const options = { maxOutputLength: maxBytes };
  try {
    const plain = await (start === undefined
      ? inflate(body, options)
      : inflateRaw(body.subarray(start), options));
    return new Uint8Array(plain.buffer, plain.byteOffset, plain.byteLength);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") {
      throw new TritonError(
        "INVALID_ARG",
        `Decompressed data size exceeds the maximum allowed value of ${maxBytes} bytes. ` +
          "Use --http-max-input-size to increase the limit.",
        { cause },
      );
    }
    throw new TritonError("INVALID_ARG", `request body is not valid ${encoding} data`, { cause });
  }
}
