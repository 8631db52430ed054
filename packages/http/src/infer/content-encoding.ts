import { promisify } from "node:util";
import { deflate as deflateCallback, gzip as gzipCallback } from "node:zlib";
import { type InferenceService, type RequestShare, UnpackFault } from "@tritonjs/core/frontend";
import { TritonError } from "@tritonjs/protocol";
import { ClientGone, type V2Request } from "../exchange/request.js";
import { InputTooLarge } from "../limits.js";

const FIXED_LENGTH = 10;
const FLAGS_AT = 3;
const HAS_CHECKSUM = 0x02;
const HAS_EXTRA = 0x04;
const HAS_NAME = 0x08;
const HAS_COMMENT = 0x10;

/** How a body may be compressed. */
type ContentEncoding = "identity" | "gzip" | "deflate";

/** The compression that `Content-Encoding` names; undefined for any but gzip and deflate. */
export function requestEncoding(header: string): ContentEncoding | undefined {
  if (header === "" || header === "identity") return "identity";
  return header === "gzip" || header === "deflate" ? header : undefined;
}

/** A request whose body is decompressed. */
interface CompressedExchange {
  readonly service: Pick<InferenceService, "requestMemory">;
  readonly request: Pick<V2Request, "gone" | "onGone">;
  /** Counts the body of the request until it is answered. */
  readonly memory: RequestShare;
}

/**
 * Decompresses a request body. The body itself shows whether it is gzip or deflate. Bytes after the compressed data are
 * ignored.
 *
 * @throws TritonError INVALID_ARG for an empty or broken body, and for one that becomes larger than `maxBytes` or too
 * large for its compressed size; UNAVAILABLE when the memory or the decompression queue is full; ClientGone when the
 * client leaves.
 */
export async function decompress(
  { service, request, memory }: CompressedExchange,
  body: Uint8Array,
  encoding: Exclude<ContentEncoding, "identity">,
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
      return new InputTooLarge(
        `Decompressed data size exceeds the maximum allowed value of ${maxBytes} bytes`,
        fault,
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

/**
 * Offset of the compressed data in a gzip member (RFC 1952); undefined for other formats. Node's own gunzip rejects a
 * body with bytes after its last member. Triton accepts it.
 */
function gzipDataStart(bytes: Uint8Array): number | undefined {
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return undefined;
  const flags = bytes[FLAGS_AT] ?? 0;
  let at = FIXED_LENGTH;
  if (flags & HAS_EXTRA) at += 2 + (bytes[at] ?? 0) + ((bytes[at + 1] ?? 0) << 8);
  if (flags & HAS_NAME) at = afterNul(bytes, at);
  if (flags & HAS_COMMENT) at = afterNul(bytes, at);
  if (flags & HAS_CHECKSUM) at += 2;
  return at;
}

function afterNul(bytes: Uint8Array, at: number): number {
  const nul = bytes.indexOf(0, at);
  return nul < 0 ? bytes.length : nul + 1;
}

const gzip = promisify(gzipCallback);
const deflate = promisify(deflateCallback);

/**
 * The encoding with the greatest weight in `Accept-Encoding`, the first of equals. Encodings other than identity, gzip
 * and deflate are ignored, as are weights that are not numbers.
 */
export function responseEncoding(header: string): ContentEncoding {
  let best: ContentEncoding = "identity";
  let bestWeight = 0;
  for (const item of header.split(",")) {
    const [, name, weightText] = /^ *(.*?)(?:;q=(.*))?$/s.exec(item)!;
    const weight = weightText === undefined ? 1 : Number.parseFloat(weightText);
    if ((name === "identity" || name === "gzip" || name === "deflate") && weight > bestWeight) {
      best = name;
      bestWeight = weight;
    }
  }
  return best;
}

/** Compresses a response body. */
export function compress(body: Buffer, encoding: Exclude<ContentEncoding, "identity">): Promise<Buffer> {
  return encoding === "gzip" ? gzip(body) : deflate(body);
}
