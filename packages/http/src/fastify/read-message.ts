import type { IncomingMessage } from "node:http";
import { BodyBuffer, ClientGone } from "../exchange/body-buffer.js";

const NO_BYTES = new Uint8Array(0);

/**
 * Reads the body of a message of Node. What a client still sends of a body that was refused is read and not kept, so
 * that the connection can go on.
 *
 * @throws TritonError INVALID_ARG for a body over the limit, ClientGone when the client leaves.
 */
export function readMessage(
  message: IncomingMessage,
  maxInputSize: number,
  tensorsAt: number | undefined,
): Promise<Uint8Array> {
  const header = message.headers["content-length"];
  const declared = header === undefined ? undefined : Number(header);
  if (declared === 0 || message.readableEnded) return Promise.resolve(NO_BYTES);
  if (message.destroyed) return Promise.reject(new ClientGone());
  return new Promise((resolve, reject) => {
    const body = new BodyBuffer(maxInputSize, declared, tensorsAt);
    const settle = (): void => {
      message.off("data", onData).off("end", onEnd).off("close", onClose).off("error", onClose);
    };
    const fail = (error: unknown): void => {
      settle();
      message.on("error", () => {}).resume();
      reject(error);
    };
    const onData = (chunk: Buffer): void => {
      try {
        body.add(chunk);
      } catch (thrown) {
        fail(thrown);
      }
    };
    const onEnd = (): void => {
      settle();
      resolve(body.bytes());
    };
    const onClose = (cause?: unknown): void => fail(new ClientGone(cause));
    message.on("data", onData).on("end", onEnd).on("close", onClose).on("error", onClose);
  });
}
