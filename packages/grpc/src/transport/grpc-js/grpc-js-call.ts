import type { EventEmitter } from "node:events";
import {
  Metadata,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type status,
} from "@grpc/grpc-js";
import type { RequestMemory, RequestShare } from "@tritonjs/core/frontend";
import { RETRY_PUSHBACK } from "@tritonjs/grpc-messages";
import { STATUS } from "../../status-from-code.js";
import type { Call, CallHeaders, DuplexStream, ResponseStream } from "../call.js";
import { type DuplexMethod, decodeRequest, type Method } from "../method.js";
import { statusOfFailure } from "../refused-call.js";

/*
 * Calls of grpc-js, in the form that handlers expect. Messages pass to and from grpc-js as bytes. So a message that is
 * rejected or cannot be encoded ends its call with the same status as over node:http2.
 */

type UnaryCall = ServerUnaryCall<Buffer, Buffer>;
type StreamCall = ServerWritableStream<Buffer, Buffer>;
type DuplexCall = ServerDuplexStream<Buffer, Buffer>;

/** A call of grpc-js. */
export class GrpcJsCall<C extends UnaryCall | StreamCall | DuplexCall> implements Call {
  /** Interceptors see the messages too. */
  readonly ownsMessages = false;
  protected readonly call: C;
  readonly headers: CallHeaders;

  constructor(call: C) {
    this.call = call;
    this.headers = callHeaders(call.metadata);
  }

  /** Metadata of the end; undefined for most calls. */
  trailers: Metadata | undefined;

  /** grpc-js reports the address with the port: `127.0.0.1:54321`, `[::1]:54321`. */
  get remoteAddress(): string | undefined {
    const peer = this.call.getPeer();
    return /^\[?(.*?)\]?:\d+$/.exec(peer)?.[1] ?? peer;
  }

  addTrailer(name: string, value: string | Uint8Array): void {
    this.trailers ??= new Metadata();
    this.trailers.set(name, typeof value === "string" ? value : Buffer.from(value));
  }

  /** grpc-js emits `cancelled` at the end of every call, answered ones included. */
  onClose(listener: () => void): void {
    if (this.call.cancelled) listener();
    else (this.call as EventEmitter).once("cancelled", listener);
  }
}

/** A call of grpc-js with a stream of responses. */
export class GrpcJsStream<C extends StreamCall | DuplexCall>
  extends GrpcJsCall<C>
  implements ResponseStream<unknown>
{
  protected readonly method: Method;
  protected ended = false;

  constructor(call: C, method: Method) {
    super(call);
    this.method = method;
  }

  write(message: unknown): boolean {
    if (this.ended || this.call.cancelled) return true;
    return this.call.write(joinedParts(this.method.encode(message)));
  }

  onDrain(listener: () => void): void {
    this.call.on("drain", listener);
  }

  end(error?: Error): void {
    if (error === undefined) this.#finish({ ...GOOD_END, metadata: this.trailers });
    else this.fail(error);
  }

  /** Ends the call with the status of a thrown error. */
  fail(error: unknown): void {
    this.#finish(serviceErrorOf(error));
  }

  /**
   * An `error` event sets the status, even of a successful call: otherwise grpc-js would send the text "OK" with it.
   */
  #finish(status: object): void {
    if (this.ended || this.call.cancelled) return;
    this.ended = true;
    this.call.emit("error", status);
  }
}

const GOOD_END = { code: STATUS.OK, details: "" };

/** A call of grpc-js with streams in both directions. */
export class GrpcJsDuplex extends GrpcJsStream<DuplexCall> implements DuplexStream<unknown, unknown> {
  readonly #memory: RequestMemory;

  constructor(call: DuplexCall, method: DuplexMethod, memory: RequestMemory) {
    super(call, method);
    this.#memory = memory;
  }

  onMessage(listener: (message: unknown, share: RequestShare) => void): void {
    this.call.on("data", (bytes: Buffer) => {
      if (this.ended) return;
      const share = this.#memory.share();
      let message: unknown;
      try {
        share.take(bytes.length);
        message = decodeRequest(this.method, bytes);
      } catch (error) {
        share.release();
        this.fail(error);
        return;
      }
      listener(message, share);
    });
  }

  onHalfClose(listener: () => void): void {
    this.call.on("end", listener);
  }

  pause(): void {
    this.call.pause();
  }

  resume(): void {
    this.call.resume();
  }
}

/** Joins a message to one piece: grpc-js does not accept parts. */
export function joinedParts(parts: readonly Uint8Array[]): Buffer {
  const [first] = parts;
  return parts.length === 1 && Buffer.isBuffer(first) ? first : Buffer.concat(parts);
}

/** Converts an error to the form in which grpc-js expects a status. */
export function serviceErrorOf(
  error: unknown,
): Error & { code: status; details: string; metadata: Metadata } {
  const { code, details, retryAfterMs } = statusOfFailure(error);
  const metadata = new Metadata();
  if (retryAfterMs !== undefined) metadata.set(RETRY_PUSHBACK, String(retryAfterMs));
  return Object.assign(new Error(details), { code: code as status, details, metadata });
}

function callHeaders(metadata: Metadata): CallHeaders {
  return {
    get: (name) => metadata.get(name).find((value) => typeof value === "string"),
    *entries() {
      for (const name of Object.keys(metadata.getMap())) {
        for (const value of metadata.get(name)) if (typeof value === "string") yield [name, value];
      }
    },
  };
}
