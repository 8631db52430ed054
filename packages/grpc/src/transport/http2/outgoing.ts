import type { ServerHttp2Stream } from "node:http2";
import type { Compressor } from "./compress.js";
import type { Connection } from "./connection.js";
import { frame } from "./frames.js";
import { ACCEPTED_ENCODINGS } from "./unpack-message.js";

export const RESPONSE_HEADERS = {
  ":status": 200,
  "content-type": "application/grpc+proto",
  "grpc-accept-encoding": ACCEPTED_ENCODINGS,
};

/** Leaves out the header `date`, which gRPC does not have. Node's types lack the option. */
const NO_DATE = { sendDate: false } as const;
const WITH_TRAILERS = { waitForTrailers: true, ...NO_DATE };

/** Options of a response that consists of headers. */
export const TRAILERS_ONLY = { endStream: true, ...NO_DATE };

/**
 * The messages of a call on their way to the client. Compression, if any, happens off the event loop and keeps the
 * order.
 */
export class Outgoing {
  readonly #stream: ServerHttp2Stream;
  readonly #compressor: Compressor | undefined;
  readonly #connection: Connection;
  #onDrain: (() => void) | undefined;
  /** Messages that are being compressed, or wait for an earlier one to be compressed. */
  #compressing = 0;
  #last: Promise<void> = Promise.resolve();

  constructor(stream: ServerHttp2Stream, compressor: Compressor | undefined, connection: Connection) {
    this.#stream = stream;
    this.#compressor = compressor;
    this.#connection = connection;
  }

  onDrain(listener: () => void): void {
    this.#onDrain = listener;
    this.#stream.on("drain", () => this.#drained());
  }

  /** Sends a message; false when the client or the compression is too slow. */
  write(parts: readonly Uint8Array[]): boolean {
    if (this.#isClosed()) return true;
    const compressor = this.#compressor;
    if (compressor === undefined) {
      this.#send(frame(parts));
      return !this.#stream.writableNeedDrain;
    }
    this.#compressing++;
    this.#last = this.#last.then(async () => {
      const compressed = await compressor.compress(parts).catch(() => undefined);
      if (!this.#isClosed()) this.#send(compressed === undefined ? frame(parts) : frame([compressed], true));
      this.#compressing--;
      this.#drained();
    });
    return false;
  }

  /** Calls `then` when all messages have been passed to the stream. */
  flushed(then: () => void): void {
    if (this.#compressing === 0) then();
    else this.#last = this.#last.then(then);
  }

  #send(pieces: readonly Uint8Array[]): void {
    const stream = this.#stream;
    if (!stream.headersSent) {
      const encoding = this.#compressor?.encoding;
      const headers =
        encoding === undefined ? RESPONSE_HEADERS : { ...RESPONSE_HEADERS, "grpc-encoding": encoding };
      stream.respond(headers, WITH_TRAILERS);
    }
    const connection = this.#connection;
    if (pieces.length > 1) stream.cork();
    for (const piece of pieces) {
      connection.writing(piece.byteLength);
      stream.write(piece, connection.written);
    }
    if (pieces.length > 1) stream.uncork();
    connection.sent();
  }

  #drained(): void {
    if (this.#compressing === 0 && !this.#stream.writableNeedDrain) this.#onDrain?.();
  }

  #isClosed(): boolean {
    return this.#stream.closed || this.#stream.destroyed;
  }
}
