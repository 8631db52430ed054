import { httpStatusOf, TritonError } from "@tritonjs/protocol";
import { type PlainJson, toJsonBytes } from "../json/write-json.js";
import type { V2Request } from "./request.js";

/** Content types of answers without tensors. The body of an error is JSON under both. */
export type ContentType = "application/json" | "text/plain";

/** One answer, ready to be sent by any kind of server. */
export interface V2Response {
  readonly status: number;
  /** Headers by lower-case name. The server adds the length of the body. */
  readonly headers: Readonly<Record<string, string>>;
  /** Bytes; pieces of one whole; or pieces that are still to come, which are sent in chunks as they come. */
  readonly body: Uint8Array | readonly Uint8Array[] | AsyncIterable<Uint8Array>;
}

const NO_BYTES = new Uint8Array(0);

/** Makes an answer in JSON. */
export function jsonResponse(value: PlainJson): V2Response {
  return { status: 200, headers: { "content-type": "application/json" }, body: toJsonBytes(value) };
}

/** Makes an answer without a body. */
export function emptyResponse(status: number, contentType: ContentType): V2Response {
  return { status, headers: { "content-type": contentType }, body: NO_BYTES };
}

/** Makes an answer with the body `{"error": message}`, and further members. */
export function faultResponse(
  status: number,
  message: string,
  contentType: ContentType,
  headers: V2Response["headers"] = {},
  further: Readonly<Record<string, string | undefined>> = {},
): V2Response {
  return {
    status,
    headers: { "content-type": contentType, ...headers },
    body: toJsonBytes({ error: message, ...further }),
  };
}

/**
 * Makes the answer to an error. An error that is not a `TritonError` is reported to the host and not shown to the
 * client.
 */
export function errorResponse(
  request: Pick<V2Request, "report">,
  thrown: unknown,
  contentType: ContentType,
  headers?: V2Response["headers"],
): V2Response {
  if (TritonError.is(thrown)) {
    const { retryAfterMs } = thrown;
    // The header can hold whole seconds only.
    const hint: V2Response["headers"] =
      retryAfterMs === undefined ? {} : { "retry-after": String(Math.ceil(retryAfterMs / 1000)) };
    const status = httpStatusOf(thrown.code, thrown.reason);
    return faultResponse(status, thrown.message, contentType, { ...hint, ...headers });
  }
  request.report(thrown);
  return faultResponse(500, "internal error", contentType, headers);
}

/** Bytes up to which copying pieces together is cheaper than sending each piece. */
const MAX_COPIED = 1 << 20;

export function joined(pieces: readonly Uint8Array[]): Uint8Array | undefined {
  const length = byteLength(pieces);
  return length <= MAX_COPIED ? Buffer.concat(pieces, length) : undefined;
}

export function byteLength(pieces: readonly Uint8Array[]): number {
  let length = 0;
  for (const piece of pieces) length += piece.length;
  return length;
}

/** True for pieces that all exist already. */
export function isWhole(body: V2Response["body"]): body is readonly Uint8Array[] {
  return Array.isArray(body);
}

/** Bytes that may wait for a slow client before the sender is asked to pause. */
const HIGH_WATER_BYTES = 64 * 1024;

/** Events for the sender of a body. */
export interface BodyStreamListener {
  /** Called when there is room again after `write` returned false. */
  onDrain(): void;
  /** Called when the reader cancels. */
  onCancel(): void;
}

/** A body that one reader reads while it is written. */
export class BodyStream implements AsyncIterable<Uint8Array>, AsyncIterator<Uint8Array> {
  #pieces: Uint8Array[] = [];
  #waitingBytes = 0;
  #full = false;
  #ended = false;
  #reader: ((result: IteratorResult<Uint8Array>) => void) | undefined;

  constructor(private readonly listener: BodyStreamListener) {}

  /** Adds a piece. Returns false when the sender should wait for `onDrain`. */
  write(piece: Uint8Array): boolean {
    if (this.#ended) return true;
    const reader = this.#reader;
    if (reader !== undefined) {
      this.#reader = undefined;
      reader({ done: false, value: piece });
      return true;
    }
    this.#pieces.push(piece);
    this.#waitingBytes += piece.length;
    this.#full = this.#waitingBytes >= HIGH_WATER_BYTES;
    return !this.#full;
  }

  /** Ends the body after the pieces written so far. */
  end(): void {
    this.#ended = true;
    this.#reader?.({ done: true, value: undefined });
  }

  next(): Promise<IteratorResult<Uint8Array>> {
    const value = this.#pieces.shift();
    if (value !== undefined) {
      this.#waitingBytes -= value.length;
      if (this.#full && this.#waitingBytes < HIGH_WATER_BYTES) {
        this.#full = false;
        this.listener.onDrain();
      }
      return Promise.resolve({ done: false, value });
    }
    if (this.#ended) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve) => {
      this.#reader = resolve;
    });
  }

  return(): Promise<IteratorResult<Uint8Array>> {
    this.#pieces = [];
    const cancelled = !this.#ended;
    this.end();
    if (cancelled) this.listener.onCancel();
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
