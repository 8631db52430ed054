import { TritonError, UnpackFault } from "@tritonjs/core";
import { ClientGone } from "../exchange/body-buffer.js";
import type { Exchange } from "../routes/route.js";
import { gzipDataStart } from "./gzip-header.js";

/** How a request body may be compressed. */
export type RequestEncoding = "identity" | "gzip" | "deflate";

/** The compression that `Content-Encoding` names; undefined for any but gzip and deflate. */
export function requestEncoding(header: string | undefined): RequestEncoding | undefined {
  if (header === undefined || header === "" || header === "identity") return "identity";
  return header === "gzip" || header === "deflate" ? header : undefined;
}

/** Parts of an exchange that unpacking uses. */
export type CompressedExchange = Pick<Exchange, "service" | "request" | "memory">;

/**
 * Undoes the compression of a request body. Which of gzip and deflate it is, is read off the body itself, and what
 * follows the compressed data is ignored.
 *
 * @throws TritonError INVALID_ARG for no body, a broken one, and one that becomes larger than `maxBytes` or too large for
 * its compressed size; UNAVAILABLE when there is no memory or no turn for it; ClientGone when the client leaves.
 */
export async function decompress(
  { service, request, memory }: CompressedExchange,
  body: Uint8Array,
  encoding: Exclude<RequestEncoding, "identity">,
  maxBytes: number,
): Promise<Uint8Array> {
  if (body.length === 0)
    throw new TritonError("INVALID_ARG", "nothing to be decompressed", { reason: "INVALID_BODY" });
  if (request.gone) throw new ClientGone();
  const headerSize = gzipDataStart(body);
  const gone = new AbortController();
  const stopWatching = request.onGone(() => gone.abort());
  const limits = { maxBytes, share: memory, signal: gone.signal };
  try {
    const { buffer, byteOffset, length } = await (headerSize === undefined
      ? service.requestMemory.unpack(body, "deflate", limits)
      : service.requestMemory.unpack(body.subarray(headerSize), "gzip-data", limits));
    memory.give(headerSize ?? 0);
    return new Uint8Array(buffer, byteOffset, length);
  } catch (cause) {
    if (gone.signal.aborted) throw new ClientGone(cause);
    throw cause instanceof UnpackFault ? toTritonError(cause, encoding, maxBytes) : cause;
  } finally {
    stopWatching();
  }
}

function toTritonError(fault: UnpackFault, encoding: string, maxBytes: number): TritonError {
  switch (fault.kind) {
    case "SIZE":
      return new TritonError(
        "INVALID_ARG",
        `Decompressed data size exceeds the maximum allowed value of ${maxBytes} bytes. ` +
          "Use --http-max-input-size to increase the limit.",
        { reason: "REQUEST_TOO_LARGE", cause: fault },
      );
    case "RATIO":
      return new TritonError("INVALID_ARG", fault.message, { reason: "INVALID_BODY", cause: fault });
    case "DATA":
      return new TritonError("INVALID_ARG", `request body is not valid ${encoding} data`, {
        reason: "INVALID_BODY",
        cause: fault,
      });
  }
}
