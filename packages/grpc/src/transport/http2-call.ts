import type { OutgoingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { promisify } from "node:util";
import { deflate, gzip } from "node:zlib";
import type { RequestMemory, RequestShare } from "@tritonjs/core/frontend";
import { LONGEST_TIMEOUT_MS } from "@tritonjs/protocol";
import { RETRY_PUSHBACK } from "@tritonjs/protocol/grpc";
import { type CallStatus, RefusedCall, STATUS, statusOfFailure } from "../status-from-code.js";
import type { CompressionLevel, Connection, TransportOptions } from "./connection.js";
import {
  ACCEPTED_ENCODINGS,
  type Frame,
  FrameReader,
  frame,
  HEADER_BYTES,
  type MessageLimit,
  unpackMessage,
} from "./frames.js";
import { type CallHeaders, decodeRequest, type Method, type ServedCall } from "./method.js";

/** Ends a stream with a status. The client's remaining bytes are read and dropped, so that the stream can close. */
export function sendStatus(
  stream: ServerHttp2Stream,
  { code, details, retryAfterMs }: CallStatus,
  further?: OutgoingHttpHeaders,
): void {
  if (stream.closed || stream.destroyed) return;
  const trailers: OutgoingHttpHeaders = { "grpc-status": code, ...further };
  if (details !== "") trailers["grpc-message"] = encodeURI(details);
  if (retryAfterMs !== undefined) trailers[RETRY_PUSHBACK] = String(retryAfterMs);
  if (stream.headersSent) {
    stream.on("wantTrailers", () => {
      if (!stream.closed && !stream.destroyed) stream.sendTrailers(trailers);
    });
    stream.end();
  } else stream.respond({ ...RESPONSE_HEADERS, ...trailers }, TRAILERS_ONLY);
  if (!stream.readableEnded) stream.resume();
}

/** A message that has not been delivered yet, and its share of the memory. */
interface Arrived {
  readonly frame: Frame;
  readonly share: RequestShare;
}

const ignore = (): void => {};

/** One call on an HTTP/2 stream: receives and sends messages, and ends with a status. */
export class Http2Call implements ServedCall {
  readonly ownsMessages = true;
  readonly #limit: MessageLimit;
  readonly #outgoing: Outgoing;
  readonly #reader: FrameReader;
  readonly #arrived: Arrived[] = [];
  readonly #memory: RequestMemory;
  /** Counts the message that is still incomplete. */
  readonly #incoming: RequestShare;
  #closeListeners: (() => void)[] = [];
  #onMessage: (message: unknown, share: RequestShare) => void = ignore;
  #onHalfClose: () => void = ignore;
  /** Metadata of the end; undefined for most calls. */
  #trailers: OutgoingHttpHeaders | undefined;
  #deadline: NodeJS.Timeout | undefined;
  #paused = false;
  #unpacking: AbortController | undefined;
  #inputEnded = false;
  #halfClosed = false;
  #over = false;

  constructor(
    private readonly stream: ServerHttp2Stream,
    readonly headers: CallHeaders,
    private readonly method: Method,
    private readonly connection: Connection,
    { messageLimit, requestMemory, inferResponseCompressionLevel }: TransportOptions,
  ) {
    this.#limit = messageLimit;
    this.#reader = new FrameReader(messageLimit);
    this.#memory = requestMemory;
    this.#incoming = requestMemory.share();
    const level = method.protocol === "inference" ? inferResponseCompressionLevel : "none";
    const compressor =
      level === "none" ? undefined : compressorFor(level, headers.get("grpc-accept-encoding"));
    this.#outgoing = new Outgoing(stream, compressor, connection);
    // This event comes once. `on` does not wrap the listener and does not remove it, which takes longer than the event.
    stream.on("close", () => {
      if (!this.#inputEnded) connection.arrived();
      this.#close();
    });
    connection.arriving();
  }

  get remoteAddress(): string | undefined {
    return this.connection.remoteAddress;
  }

  /** Starts the deadline and the reading. Call it after the listeners are registered. */
  start(): void {
    try {
      const timeout = timeoutOf(this.headers.get("grpc-timeout"));
      if (timeout !== undefined) this.#deadline = setTimeout(() => this.#expire(), timeout);
    } catch (error) {
      this.fail(error);
      return;
    }
    this.stream.on("data", (piece: Buffer) => this.#read(piece));
    this.stream.on("end", () => {
      this.#inputEnded = true;
      this.connection.arrived();
      this.#deliver();
    });
  }

  onMessage(listener: (message: unknown, share: RequestShare) => void): void {
    this.#onMessage = listener;
  }

  onHalfClose(listener: () => void): void {
    this.#onHalfClose = listener;
  }

  onClose(listener: () => void): void {
    if (this.#over) listener();
    else this.#closeListeners.push(listener);
  }

  addTrailer(name: string, value: string | Uint8Array): void {
    this.#trailers ??= {};
    this.#trailers[name] = typeof value === "string" ? value : Buffer.from(value).toString("base64");
  }

  onDrain(listener: () => void): void {
    this.#outgoing.onDrain(listener);
  }

  pause(): void {
    this.#paused = true;
    this.stream.pause();
  }

  resume(): void {
    this.#paused = false;
    this.#deliver();
    if (!this.#paused) this.stream.resume();
  }

  write(message: unknown): boolean {
    return this.#over || this.#outgoing.write(this.method.encode(message));
  }

  end(error?: Error): void {
    if (error === undefined) this.#finish({ code: STATUS.OK, details: "" });
    else this.fail(error);
  }

  fail(error: unknown): void {
    this.#finish(statusOfFailure(error));
  }

  #read(piece: Buffer): void {
    this.connection.received();
    if (this.#over) return;
    try {
      this.#incoming.take(piece.length);
      for (const frame of this.#reader.push(piece)) {
        this.#arrived.push({ frame, share: this.#incoming.split(HEADER_BYTES + frame.bytes.length) });
      }
    } catch (error) {
      this.fail(error);
      return;
    }
    this.#deliver();
  }

  /** Delivers complete messages in order: a message that is being decompressed holds later ones back. */
  #deliver(): void {
    while (!this.#over && !this.#paused && this.#unpacking === undefined) {
      const next = this.#arrived.shift();
      if (next === undefined) break;
      const { frame, share } = next;
      if (frame.compressed) this.#unpack(frame.bytes, share);
      else this.#decode(frame.bytes, share);
    }
    if (!this.#inputEnded || this.#halfClosed || this.#unpacking !== undefined) return;
    if (this.#over || this.#arrived.length > 0) return;
    this.#halfClosed = true;
    this.#onHalfClose();
  }

  /** Pauses reading until the message is decompressed: a client could send small messages faster than that. */
  #unpack(bytes: Buffer, share: RequestShare): void {
    const over = new AbortController();
    this.#unpacking = over;
    this.stream.pause();
    const encoding = this.headers.get("grpc-encoding") ?? "identity";
    const limits = { memory: this.#memory, share, limit: this.#limit, signal: over.signal };
    unpackMessage(bytes, encoding, limits).then(
      (message) => {
        this.#unpacking = undefined;
        this.#decode(message, share);
        this.#deliver();
        if (!this.#paused && this.#unpacking === undefined) this.stream.resume();
      },
      (error) => {
        share.release();
        this.fail(error);
      },
    );
  }

  #decode(bytes: Buffer, share: RequestShare): void {
    if (this.#over) {
      share.release();
      return;
    }
    let message: unknown;
    try {
      message = decodeRequest(this.method, bytes);
    } catch (error) {
      share.release();
      this.fail(error);
      return;
    }
    this.#onMessage(message, share);
  }

  #expire(): void {
    // The text that clients also create themselves: either of the two may be first.
    this.fail(new RefusedCall(STATUS.DEADLINE_EXCEEDED, "Deadline Exceeded"));
  }

  #finish(status: CallStatus): void {
    if (this.#over) return;
    this.#outgoing.flushed(() => {
      sendStatus(this.stream, status, this.#trailers);
      this.connection.sent();
    });
    this.#close();
  }

  #close(): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#deadline);
    this.#unpacking?.abort();
    this.#incoming.release();
    for (const { share } of this.#arrived.splice(0)) share.release();
    for (const listener of this.#closeListeners) listener();
    this.#closeListeners = [];
    this.#onMessage = ignore;
    this.#onHalfClose = ignore;
  }
}

const RESPONSE_HEADERS = {
  ":status": 200,
  "content-type": "application/grpc+proto",
  "grpc-accept-encoding": ACCEPTED_ENCODINGS,
};

/** Leaves out the header `date`, which gRPC does not have. Node's types lack the option. */
const NO_DATE = { sendDate: false } as const;
const WITH_TRAILERS = { waitForTrailers: true, ...NO_DATE };

/** Options of a response that consists of headers. */
const TRAILERS_ONLY = { endStream: true, ...NO_DATE };

/**
 * The messages of a call on their way to the client. Compression, if any, happens off the event loop and keeps the
 * order.
 */
class Outgoing {
  #onDrain: (() => void) | undefined;
  /** Messages that are being compressed, or wait for an earlier one to be compressed. */
  #compressing = 0;
  #last: Promise<void> = Promise.resolve();

  constructor(
    private readonly stream: ServerHttp2Stream,
    private readonly compressor: Compressor | undefined,
    private readonly connection: Connection,
  ) {}

  onDrain(listener: () => void): void {
    this.#onDrain = listener;
    this.stream.on("drain", () => this.#drained());
  }

  /** Sends a message; false when the client or the compression is too slow. */
  write(parts: readonly Uint8Array[]): boolean {
    if (this.#isClosed()) return true;
    const compressor = this.compressor;
    if (compressor === undefined) {
      this.#send(frame(parts));
      return !this.stream.writableNeedDrain;
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
    const stream = this.stream;
    if (!stream.headersSent) {
      const encoding = this.compressor?.encoding;
      const headers =
        encoding === undefined ? RESPONSE_HEADERS : { ...RESPONSE_HEADERS, "grpc-encoding": encoding };
      stream.respond(headers, WITH_TRAILERS);
    }
    const connection = this.connection;
    if (pieces.length > 1) stream.cork();
    for (const piece of pieces) {
      connection.writing(piece.byteLength);
      stream.write(piece, connection.written);
    }
    if (pieces.length > 1) stream.uncork();
    connection.sent();
  }

  #drained(): void {
    if (this.#compressing === 0 && !this.stream.writableNeedDrain) this.#onDrain?.();
  }

  #isClosed(): boolean {
    return this.stream.closed || this.stream.destroyed;
  }
}

const encoders = { gzip: promisify(gzip), deflate: promisify(deflate) };

/** zlib's level for each name. */
const LEVELS: Readonly<Record<Exclude<CompressionLevel, "none">, number>> = { low: 1, medium: 6, high: 9 };

/** Size from which messages are compressed, in bytes. */
const WORTH_IT_BYTES = 1024;

/** Compresses messages with an encoding that the client accepts. */
interface Compressor {
  readonly encoding: keyof typeof encoders;
  /** The compressed message; undefined when it would not be smaller. */
  compress(parts: readonly Uint8Array[]): Promise<Buffer | undefined>;
}

/** The compressor for a client that accepts these encodings; undefined for none. */
function compressorFor(level: CompressionLevel, acceptEncoding: string | undefined): Compressor | undefined {
  if (level === "none" || acceptEncoding === undefined) return undefined;
  const accepted = acceptEncoding.split(",").map((name) => name.trim());
  const encoding = (["gzip", "deflate"] as const).find((name) => accepted.includes(name));
  if (encoding === undefined) return undefined;
  const options = { level: LEVELS[level] };
  return {
    encoding,
    async compress(parts) {
      const bytes = Buffer.concat(parts);
      if (bytes.length < WORTH_IT_BYTES) return undefined;
      const compressed = await encoders[encoding](bytes, options);
      return compressed.length < bytes.length ? compressed : undefined;
    },
  };
}

const MILLISECONDS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};

/**
 * Milliseconds in the header `grpc-timeout`; undefined for no limit, and for a limit beyond the longest timer.
 *
 * @throws RefusedCall INTERNAL for an invalid header.
 */
export function timeoutOf(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  const [, digits, unit] = /^(\d{1,8})([HMSmun])$/.exec(header) ?? [];
  if (digits === undefined) throw new RefusedCall(STATUS.INTERNAL, `Invalid grpc-timeout value "${header}"`);
  const milliseconds = Number(digits) * MILLISECONDS[unit!]!;
  return milliseconds > LONGEST_TIMEOUT_MS ? undefined : milliseconds;
}
