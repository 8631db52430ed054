import { type RequestMemory, type RequestShare, UnpackFault } from "@tritonjs/core/frontend";
import { STATUS } from "../../status-from-code.js";
import { RefusedCall } from "../refused-call.js";
import { type MessageLimit, unpacksTooLarge } from "./frames.js";

/** Accepted encodings of messages. */
export const ACCEPTED_ENCODINGS = "identity,deflate,gzip";

/** Limits on the decompression of one message. */
export interface UnpackLimits {
  readonly memory: RequestMemory;
  /** Counts the message. */
  readonly share: RequestShare;
  readonly limit: MessageLimit;
  /** Aborts when the call is over. */
  readonly signal: AbortSignal;
}

/**
 * Decompresses a message.
 *
 * @throws RefusedCall RESOURCE_EXHAUSTED for a message that becomes larger than `limit`, or too large for its
 * compressed size; UNIMPLEMENTED for an unknown encoding; INTERNAL for broken data. TritonError UNAVAILABLE when the
 * memory or the decompression queue is full.
 */
export async function unpackMessage(bytes: Buffer, encoding: string, limits: UnpackLimits): Promise<Buffer> {
  if (encoding === "identity") return bytes;
  if (encoding !== "gzip" && encoding !== "deflate") {
    throw new RefusedCall(
      STATUS.UNIMPLEMENTED,
      `Received message compressed with unsupported encoding "${encoding}"`,
    );
  }
  const { memory, share, limit, signal } = limits;
  try {
    return await memory.unpack(bytes, encoding, { share, maxBytes: limit.bytes, signal });
  } catch (error) {
    throw error instanceof UnpackFault ? toRefusal(error, limit) : error;
  }
}

function toRefusal(fault: UnpackFault, limit: MessageLimit): RefusedCall {
  switch (fault.kind) {
    case "SIZE":
      return new RefusedCall(STATUS.RESOURCE_EXHAUSTED, unpacksTooLarge(limit));
    case "RATIO":
      return new RefusedCall(STATUS.RESOURCE_EXHAUSTED, fault.message);
    case "DATA":
      return new RefusedCall(STATUS.INTERNAL, "Failed to decompress message");
  }
}
