import { TritonError } from "@tritonjs/core";
import { BODY_ALLOWANCE, MAX_CHUNKS } from "../limits.js";

const FIRST_CAPACITY = 16 * 1024;
const NO_BYTES = new Uint8Array(0);
/** Size of the largest element of a tensor. */
const ALIGNMENT = 8;

/** The error of a client that left before its request was complete. Nobody is there to read it. */
export class ClientGone extends Error {
  override readonly name = "ClientGone";

  constructor(cause?: unknown) {
    super("the client left before its request was complete", { cause });
  }
}

/** An error after which nothing more is read from the connection. */
export class ConnectionFault extends TritonError {}

/**
 * Collects a request body in one piece of memory: of the declared size where the client declared one, growing
 * otherwise. A body that is too large is refused as soon as that is known.
 */
export class BodyBuffer {
  #length = 0;
  #chunks = 0;
  #buffer = NO_BYTES;
  readonly #maxInputSize: number;
  readonly #limit: number;
  readonly #declared: number | undefined;
  readonly #padding: number;

  /** @throws TritonError INVALID_ARG when the declared size is over the limit. */
  constructor(maxInputSize: number, declared: number | undefined, alignedAt: number) {
    this.#maxInputSize = maxInputSize;
    this.#limit = maxInputSize + BODY_ALLOWANCE;
    this.#declared = declared;
    this.#padding = alignedAt > 0 ? (ALIGNMENT - (alignedAt % ALIGNMENT)) % ALIGNMENT : 0;
    if (declared !== undefined && declared > this.#limit) throw this.#tooLarge(declared);
  }

  /** @throws TritonError INVALID_ARG when this chunk is too much, or one too many. */
  add(chunk: Uint8Array): void {
    const needed = this.#length + chunk.length;
    if (needed > this.#limit) throw this.#tooLarge(needed);
    if (needed > this.#buffer.length) this.#grow(needed);
    this.#buffer.set(chunk, this.#length);
    this.#length = needed;
    this.#chunks++;
    if (this.#declared === undefined && this.#chunks > MAX_CHUNKS) throw tooManyChunks();
  }

  bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.#length);
  }

  #grow(needed: number): void {
    const capacity = this.#declared ?? Math.max(needed, FIRST_CAPACITY, this.#buffer.length * 2);
    const size = Math.min(Math.max(capacity, needed), this.#limit);
    const { buffer } = Buffer.allocUnsafeSlow(size + this.#padding);
    const grown = new Uint8Array(buffer, this.#padding, size);
    grown.set(this.bytes());
    this.#buffer = grown;
  }

  #tooLarge(size: number): TritonError {
    return new TritonError(
      "INVALID_ARG",
      `request body size of ${size} bytes exceeds the maximum allowed input size of ${this.#maxInputSize} bytes. ` +
        "Use --http-max-input-size to increase the limit.",
    );
  }
}

function tooManyChunks(): TritonError {
  return new ConnectionFault(
    "INVALID_ARG",
    `Chunked request body exceeds maximum of ${MAX_CHUNKS} non-empty chunks. Send fewer or larger HTTP chunks.`,
  );
}
