import { promisify } from "node:util";
import { unzip as unzipCallback } from "node:zlib";
import { TritonError } from "@tritonjs/core";

const unzip = promisify(unzipCallback);

/** How a request body may be compressed. */
export type RequestEncoding = "identity" | "gzip" | "deflate";

/**
 * The compression that `Content-Encoding` names.
 *
 * @throws TritonError UNSUPPORTED for any but gzip and deflate.
 */
export function requestEncoding(header: string | undefined): RequestEncoding {
  if (header === undefined || header === "" || header === "identity") return "identity";
  if (header === "gzip" || header === "deflate") return header;
  throw new TritonError("UNSUPPORTED", "Unsupported compression type");
}

/**
 * Undoes the compression of a request body. Which of gzip and deflate it is, is read off the body itself.
 *
 * @throws TritonError INVALID_ARG for no body, a broken one, and one that becomes larger than `maxBytes`.
 */
export async function decompress(body: Buffer, encoding: RequestEncoding, maxBytes: number): Promise<Buffer> {
  if (encoding === "identity") return body;
  if (body.length === 0) throw new TritonError("INVALID_ARG", "nothing to be decompressed");
  try {
    return await unzip(body, { maxOutputLength: maxBytes });
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
