import type { OutgoingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { RequestMemory, RequestShare } from "@tritonjs/core/frontend";
import { RETRY_PUSHBACK } from "@tritonjs/grpc-messages";
import { type CallStatus, STATUS } from "../../status-from-code.js";
import type { CallHeaders, DuplexStream } from "../call.js";
import { decodeRequest, type Method } from "../method.js";
import { RefusedCall, statusOfFailure } from "../refused-call.js";
import { compressorFor } from "./compress.js";
import type { Connection } from "./connection.js";
import { timeoutOf } from "./deadline.js";
import { type Frame, FrameReader, HEADER_BYTES, type MessageLimit } from "./frames.js";
import { Outgoing, RESPONSE_HEADERS, TRAILERS_ONLY } from "./outgoing.js";
import type { TransportOptions } from "./transport-options.js";
import { unpackMessage } from "./unpack-message.js";

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
export class Http2Call implements DuplexStream<unknown, unknown> {
  readonly ownsMessages = true;
  readonly headers: CallHeaders;
  readonly #stream: ServerHttp2Stream;
  readonly #method: Method;
  readonly #limit: MessageLimit;
  readonly #connection: Connection;
  readonly #outgoing: Outgoing;
  readonly #reader: FrameReader;
  readonly #arrived: Arrived[] = [];
  readonly #memory: RequestMemory;
  /** Counts the message that is still incomplete. */
  readonly #incoming: RequestShare;
  /** Share of the request of a call that has only one. */
  #held: RequestShare | undefined;
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
    stream: ServerHttp2Stream,
    headers: CallHeaders,
    method: Method,
    connection: Connection,
    { messageLimit, requestMemory, inferResponseCompressionLevel }: TransportOptions,
  ) {
    this.headers = headers;
    this.#stream = stream;
    this.#method = method;
    this.#connection = connection;
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
    return this.#connection.remoteAddress;
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
    this.#stream.on("data", (piece: Buffer) => this.#read(piece));
    this.#stream.on("end", () => {
      this.#inputEnded = true;
      this.#connection.arrived();
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
    this.#stream.pause();
  }

  resume(): void {
    this.#paused = false;
    this.#deliver();
    if (!this.#paused) this.#stream.resume();
  }

  write(message: unknown): boolean {
    return this.#over || this.#outgoing.write(this.#method.encode(message));
  }

  end(error?: Error): void {
    if (error === undefined) this.#finish({ code: STATUS.OK, details: "" });
    else this.fail(error);
  }

  /** Ends the call with the status of a thrown error. */
  fail(error: unknown): void {
    this.#finish(statusOfFailure(error));
  }

  #read(piece: Buffer): void {
    this.#connection.received();
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
    this.#stream.pause();
    const encoding = this.headers.get("grpc-encoding") ?? "identity";
    const limits = { memory: this.#memory, share, limit: this.#limit, signal: over.signal };
    unpackMessage(bytes, encoding, limits).then(
      (message) => {
        this.#unpacking = undefined;
        this.#decode(message, share);
        this.#deliver();
        if (!this.#paused && this.#unpacking === undefined) this.#stream.resume();
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
      message = decodeRequest(this.#method, bytes);
    } catch (error) {
      share.release();
      this.fail(error);
      return;
    }
    if (this.#method.kind !== "duplex") this.#hold(share);
    this.#onMessage(message, share);
  }

  /** Keeps the share of the only request until the call is over. */
  #hold(share: RequestShare): void {
    this.#held?.release();
    this.#held = share;
  }

  #expire(): void {
    // The text that clients also create themselves: either of the two may be first.
    this.fail(new RefusedCall(STATUS.DEADLINE_EXCEEDED, "Deadline Exceeded"));
  }

  #finish(status: CallStatus): void {
    if (this.#over) return;
    this.#outgoing.flushed(() => {
      sendStatus(this.#stream, status, this.#trailers);
      this.#connection.sent();
    });
    this.#close();
  }

  #close(): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#deadline);
    this.#unpacking?.abort();
    this.#incoming.release();
    this.#held?.release();
    for (const { share } of this.#arrived.splice(0)) share.release();
    for (const listener of this.#closeListeners) listener();
    this.#closeListeners = [];
    this.#onMessage = ignore;
    this.#onHalfClose = ignore;
  }
}
