import type { IncomingMessage } from "node:http";
import { freeMemory, type RequestShare } from "@tritonjs/core/frontend";
import { BodyBuffer, ClientGone } from "../exchange/body-buffer.js";

const NO_BYTES = new Uint8Array(0);

/** Bytes of a chunk from which freeing it costs less than leaving it to the garbage collector. */
const WORTH_FREEING_BYTES = 16 * 1024;

/**
 * Reads the body of a message of Node. After a body is rejected, its remaining bytes are read and dropped, so that the
 * connection can be used again.
 *
 * @param memory share that counts the body as it arrives
 * @throws TritonError INVALID_ARG for a body over the limit, UNAVAILABLE for a body over the memory budget, ClientGone
 * when the client leaves.
 */
export function readMessage(
  message: IncomingMessage,
  memory: RequestShare,
  maxInputSize: number,
  tensorsAt: number | undefined,
): Promise<Uint8Array> {
  const header = message.headers["content-length"];
  const declared = header === undefined ? undefined : Number(header);
  if (declared === 0 || message.readableEnded) return Promise.resolve(NO_BYTES);
  if (message.destroyed) return Promise.reject(new ClientGone());
  return new Promise((resolve, reject) => {
    const body = new BodyBuffer(maxInputSize, declared, tensorsAt);
    if (declared !== undefined) memory.expect(declared);
    let settled = false;
    const fail = (error: unknown): void => {
      settled = true;
      message.resume();
      reject(error);
    };
    message.on("data", (chunk: Buffer) => {
      if (settled) return;
      try {
        memory.take(chunk.length);
        body.add(chunk, true);
        if (isOurs(chunk, message)) freeMemory(chunk.buffer as ArrayBuffer);
      } catch (thrown) {
        fail(thrown);
      }
    });
    message.on("end", () => {
      settled = true;
      resolve(body.bytes());
    });
    const leave = (cause?: unknown): void => {
      if (!settled) fail(new ClientGone(cause));
    };
    message.on("error", leave);
    message.on("close", leave);
  });
}

/** True for a chunk with memory of its own, as node:http makes it, that no other listener sees. The body has a copy. */
function isOurs({ length, buffer }: Buffer, message: IncomingMessage): boolean {
  return length >= WORTH_FREEING_BYTES && buffer.byteLength === length && message.listenerCount("data") === 1;
}
