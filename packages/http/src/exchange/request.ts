import { constants } from "node:buffer";
import { TritonError } from "@tritonjs/protocol";
import type { Client, RequestShare } from "@tritonjs/server";
import { BODY_ALLOWANCE, InputTooLarge, MAX_CHUNKS } from "../limits.js";

export { ClientGone } from "@tritonjs/server";

/** One request as the routes see it. It is the same for every kind of server. */
export interface V2Request extends Client {
  readonly method: string;
  /** The path as sent: not decoded, without the query, and without the prefix of the routes. */
  readonly path: string;
  /** Names and values in turn, as sent. */
  readonly rawHeaders: readonly string[];
  /** How the client reached the server, as far as the server can tell. */
  readonly scheme: "http" | "https";
  /** Address of the peer; undefined where the server does not report it. */
  readonly remoteAddress: string | undefined;
  /** `Access-Control-Allow-Origin`, where the application around the routes has already put it into the answer. */
  readonly grantedOrigin?: string | undefined;
  /**
   * True if the memory that `readBody` returns belongs to the request alone. It may then be freed when the model has
   * used it. @default false
   */
  readonly ownsBody?: boolean;
  /**
   * Reads the body into one piece of memory.
   *
   * @param memory share that counts the body as it arrives
   * @param tensorsAt offset of the tensors in the body. In a body of declared size this offset is aligned in memory for
   * all data types, so the tensors can be used in place. Undefined for a body of JSON alone.
   * @throws TritonError INVALID_ARG for a body over the limit, UNAVAILABLE for a body over the memory budget,
   * ClientGone when the client leaves.
   */
  readBody(memory: RequestShare, maxInputSize: number, tensorsAt?: number): Promise<Uint8Array>;
  /**
   * Calls `listener` when the operating system has the answer, or the client has left; at once on servers that cannot
   * tell. Call it just before the answer is sent.
   */
  onSent(listener: () => void): void;
  /** Reports an error to the host. The client does not see it. */
  report(error: unknown): void;
}

/** The value of a header; the first one if the header was sent several times. */
export function firstHeader({ rawHeaders }: V2Request, name: string): string | undefined {
  const wanted = name.toLowerCase();
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const sent = rawHeaders[i]!;
    if (sent.length === wanted.length && sent.toLowerCase() === wanted) return rawHeaders[i + 1];
  }
  return undefined;
}

export function* headerEntries({ rawHeaders }: V2Request): Generator<readonly [name: string, value: string]> {
  for (let i = 0; i < rawHeaders.length; i += 2) yield [rawHeaders[i]!, rawHeaders[i + 1]!];
}

/** All headers of a request, as an object of the web platform. */
export function headersOf(request: V2Request): Headers {
  const headers = new Headers();
  for (const [name, value] of headerEntries(request)) headers.append(name, value);
  return headers;
}

const FIRST_CAPACITY = 1024;
/** A declared body gets its whole memory when one byte of this many has come. Until then, memory doubles. */
const TRUSTED_SHARE = 8;
/** Bytes up to which a body in one piece is not moved. Elements that need alignment are copied when they are read. */
const MAX_UNALIGNED = 4096;
const NO_BYTES = new Uint8Array(0);
/** Size of the largest tensor element, in bytes. */
const ALIGNMENT = 8;

/** An error after which the server reads nothing more from the connection. */
export class ConnectionFault extends TritonError {}

/**
 * Most bytes of JSON for one byte of a tensor. `false, ` for a BOOL has seven. An FP32 such as
 * `-1.1754943508222875e-38, ` has 25 for its four bytes.
 */
const JSON_BYTES_PER_TENSOR_BYTE = 8;

/** Room for padding before a body. */
const LARGEST_BUFFER = constants.MAX_LENGTH - 64;

/**
 * Size of the largest body that is read. A raw body is one tensor; in all others the limit is on the tensors, not on
 * their JSON.
 */
export function maxBodySize(maxInputSize: number, isRaw: boolean): number {
  const bytes = isRaw ? maxInputSize : maxInputSize * JSON_BYTES_PER_TENSOR_BYTE;
  return Math.min(bytes + BODY_ALLOWANCE, LARGEST_BUFFER);
}

/**
 * Collects a request body in one piece of memory. The memory grows with the bytes that have come, and has the declared
 * size once an eighth of them has: a client gets no memory for what it only announces. A body that is too large is
 * rejected as soon as that is known.
 */
export class BodyBuffer {
  #length = 0;
  #chunks = 0;
  #buffer: Uint8Array = NO_BYTES;
  readonly #limit: number;
  readonly #padding: number;

  /**
   * @param tensorsAt offset of the tensors, which is aligned for them; undefined for JSON alone
   * @throws TritonError INVALID_ARG when the declared size is over the limit.
   */
  constructor(
    private readonly maxInputSize: number,
    private readonly declared: number | undefined,
    private readonly tensorsAt: number | undefined,
  ) {
    this.#limit = maxBodySize(maxInputSize, tensorsAt === 0);
    this.#padding = (ALIGNMENT - ((tensorsAt ?? 0) % ALIGNMENT)) % ALIGNMENT;
    if (declared !== undefined && declared > this.#limit) throw this.#tooLarge(declared);
  }

  /**
   * @param kept whether the caller leaves the chunk to this object, so that it need not be copied
   * @throws TritonError INVALID_ARG when the chunk exceeds the limit on bytes or on chunks.
   */
  add(chunk: Uint8Array, kept = false): void {
    const needed = this.#length + chunk.length;
    if (needed > this.#limit) throw this.#tooLarge(needed);
    if (kept && needed === this.declared && this.#length === 0 && needed <= MAX_UNALIGNED) {
      this.#buffer = chunk;
      this.#length = needed;
      return;
    }
    if (needed > this.#buffer.length) this.#grow(needed);
    this.#buffer.set(chunk, this.#length);
    this.#length = needed;
    this.#chunks++;
    if (this.declared === undefined && this.#chunks > MAX_CHUNKS) throw tooManyChunks();
  }

  bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.#length);
  }

  #grow(needed: number): void {
    const size = Math.min(Math.max(this.#capacity(needed), needed), this.#limit);
    const { buffer } = Buffer.allocUnsafeSlow(size + this.#padding);
    const grown = new Uint8Array(buffer, this.#padding, size);
    grown.set(this.bytes());
    this.#buffer = grown;
  }

  #capacity(needed: number): number {
    const doubled = Math.max(FIRST_CAPACITY, this.#buffer.length * 2);
    if (this.declared === undefined) return doubled;
    return needed * TRUSTED_SHARE >= this.declared ? this.declared : Math.min(doubled, this.declared);
  }

  #tooLarge(size: number): TritonError {
    const fault =
      this.tensorsAt === 0
        ? `Raw input has a byte_size (${size} bytes) that exceeds the maximum allowed value of ` +
          `${this.maxInputSize} bytes`
        : `request ${this.tensorsAt === undefined ? "JSON" : "body"} size of ${size} bytes exceeds the maximum ` +
          `allowed input size of ${this.#limit} bytes`;
    return new InputTooLarge(fault);
  }
}

function tooManyChunks(): TritonError {
  return new ConnectionFault(
    "INVALID_ARG",
    `Chunked request body exceeds maximum of ${MAX_CHUNKS} non-empty chunks. Send fewer or larger HTTP chunks.`,
  );
}

/** The first `length` bytes as text in which each character is one byte. */
export function latin1Text(bytes: Uint8Array, length = bytes.length): string {
  const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, length);
  return buffer.toString("latin1", 0, length);
}
