import { promisify } from "node:util";
import { gunzip, inflate } from "node:zlib";
import { STATUS } from "../../status-from-code.js";
import { RefusedCall } from "./refused-call.js";

/** Encodings of messages that are understood. */
export const ACCEPTED_ENCODINGS = "identity,deflate,gzip";

const decoders = { gzip: promisify(gunzip), deflate: promisify(inflate) };

/**
 * Undoes the compression of a message.
 *
 * @throws RefusedCall UNIMPLEMENTED for an unknown encoding, RESOURCE_EXHAUSTED for what unpacks to more than
 * `maxSize` bytes, INTERNAL for what is no such data.
 */
export async function decompress(bytes: Buffer, encoding: string, maxSize: number): Promise<Buffer> {
  if (encoding === "identity") return bytes;
  const decode = encoding === "gzip" || encoding === "deflate" ? decoders[encoding] : undefined;
  if (decode === undefined) {
    throw new RefusedCall(
      STATUS.UNIMPLEMENTED,
      `Received message compressed with unsupported encoding "${encoding}"`,
    );
  }
  try {
    return await decode(bytes, { maxOutputLength: maxSize });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") {
      throw new RefusedCall(
        STATUS.RESOURCE_EXHAUSTED,
        `Received message that decompresses to a size larger than ${maxSize}`,
      );
    }
    throw new RefusedCall(STATUS.INTERNAL, "Failed to decompress message");
  }
}
