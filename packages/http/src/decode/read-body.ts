import type { IncomingMessage } from "node:http";
import { TritonError } from "@tritonjs/core";
import { BODY_ALLOWANCE, MAX_CHUNKS } from "../limits.js";

const FIRST_CAPACITY = 16 * 1024;
const NO_BYTES = new Uint8Array(0);
/** Size of the largest element of a tensor. */
const ALIGNMENT = 8;

/** The error of a client that left before its request was complete. Nobody is there to read it. */
export class ClientGone extends Error {
  override readonly name = "ClientGone";
}

/** An error after which nothing more is read from the connection. */
export class ConnectionFault extends TritonError {}

/**
 * Reads a request body into one buffer: of the declared size where the client declared one, growing otherwise. A body
 * that is too large is refused as soon as that is known, and what the client still sends of it is not kept.
 *
 * @param alignedAt a place in a body of declared size that should be aligned in memory for all data types, so that
 * tensors that start there can be used where they are
 * @throws TritonError INVALID_ARG for a body over the limit, or in too many chunks.
 */
export function readBody(message: IncomingMessage, maxInputSize: number, alignedAt = 0): Promise<Uint8Array> {
  const limit = maxInputSize + BODY_ALLOWANCE;
  const header = message.headers["content-length"];
  const declared = header === undefined ? undefined : Number(header);
  if (declared !== undefined && declared > limit) return Promise.reject(tooLarge(declared, maxInputSize));
  if (declared === 0 || (declared === undefined && message.headers["transfer-encoding"] === undefined)) {
    return Promise.resolve(NO_BYTES);
  }
  return new Promise((resolve, reject) => {
    const body = new BodyBuffer(limit, declared, alignedAt);
    const settle = (): void => {
      message.off("data", onData).off("end", onEnd).off("close", onClose).off("error", onClose);
    };
    const fail = (error: Error): void => {
      settle();
      message.on("error", () => {}).resume();
      reject(error);
    };
    const onData = (chunk: Buffer): void => {
      if (!body.add(chunk)) fail(tooLarge(body.length + chunk.length, maxInputSize));
      else if (declared === undefined && body.chunks > MAX_CHUNKS) fail(tooManyChunks());
    };
    const onEnd = (): void => {
      settle();
      resolve(body.bytes());
    };
    const onClose = (): void => fail(new ClientGone("the client left before its request was complete"));
    message.on("data", onData).on("end", onEnd).on("close", onClose).on("error", onClose);
  });
}

/** Collects chunks in one piece of memory. */
class BodyBuffer {
  length = 0;
  chunks = 0;
  #buffer = NO_BYTES;
  readonly #limit: number;
  readonly #declared: number | undefined;
  readonly #padding: number;

  constructor(limit: number, declared: number | undefined, alignedAt: number) {
    this.#limit = limit;
    this.#declared = declared;
    this.#padding = alignedAt > 0 ? (ALIGNMENT - (alignedAt % ALIGNMENT)) % ALIGNMENT : 0;
  }

  /** False when the limit is passed. */
  add(chunk: Buffer): boolean {
    const needed = this.length + chunk.length;
    if (needed > this.#limit) return false;
    if (needed > this.#buffer.length) this.#grow(needed);
    this.#buffer.set(chunk, this.length);
    this.length = needed;
    this.chunks++;
    return true;
  }

  bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.length);
  }

  #grow(needed: number): void {
    const capacity = this.#declared ?? Math.max(needed, FIRST_CAPACITY, this.#buffer.length * 2);
    const size = Math.min(capacity, this.#limit);
    const { buffer } = Buffer.allocUnsafeSlow(size + this.#padding);
    const grown = new Uint8Array(buffer, this.#padding, size);
    grown.set(this.bytes());
    this.#buffer = grown;
  }
}

function tooLarge(size: number, maxInputSize: number): TritonError {
  return new TritonError(
    "INVALID_ARG",
    `request body size of ${size} bytes exceeds the maximum allowed input size of ${maxInputSize} bytes. ` +
      "Use --http-max-input-size to increase the limit.",
  );
}

function tooManyChunks(): TritonError {
  return new ConnectionFault(
    "INVALID_ARG",
    `Chunked request body exceeds maximum of ${MAX_CHUNKS} non-empty chunks. Send fewer or larger HTTP chunks.`,
  );
}
