import { Metadata, type ServerInterceptingCall, type ServerInterceptor } from "@grpc/grpc-js";
import { type RequestMemory, type RequestShare, TritonError } from "@tritonjs/core";
import { RETRY_PUSHBACK } from "@tritonjs/grpc-messages";
import { statusFromError } from "../status-from-code.js";
import { HEADER_BYTES } from "./http2/frames.js";
import { RefusedCall } from "./http2/refused-call.js";
import { tooLarge } from "./message-size.js";
import { unpackMessage } from "./unpack-message.js";

/*
 * grpc-js reads and unpacks messages by itself, and has no place for others in it: the limits of the memory for requests
 * are put around methods of its calls that are not part of its interface. Where a version does not have them, messages
 * are unpacked by grpc-js, within the limit on their size alone, and count from then on.
 */

/** The end of a call, as grpc-js is told it. */
interface Status {
  readonly code: number;
  readonly details: string;
  readonly metadata?: Metadata | null;
}

/** A call of grpc-js from the inside. */
interface InnerCall {
  readonly cancelNotified: boolean;
  handleDataFrame(data: Buffer): void;
  decompressMessage(message: Buffer, encoding: string): Buffer | Promise<Buffer>;
  notifyOnCancel(): void;
  sendStatus(status: Status): void;
}

/** Shares of messages, by the bytes that grpc-js hands over to be decoded. */
export type SharesOfMessages = WeakMap<Uint8Array, MessageShare>;

/** Share of one message. */
export interface MessageShare {
  readonly share: RequestShare;
  /** Takes the share over from the call, which otherwise releases it at its end. */
  takeOver(): void;
}

/** Makes the calls of a server keep to the memory for requests. */
export function limitMemory(
  memory: RequestMemory,
  maxSize: number,
  shares: SharesOfMessages,
): ServerInterceptor {
  return (_method, call) => {
    const inner = call as unknown as Partial<InnerCall>;
    if (isComplete(inner)) new CallMemory(inner, memory, maxSize, shares).attach();
    // The type asks for a call of another class, but any call will do.
    return call as ServerInterceptingCall;
  };
}

function isComplete(call: Partial<InnerCall>): call is InnerCall {
  return (["handleDataFrame", "decompressMessage", "notifyOnCancel", "sendStatus"] as const).every(
    (name) => typeof call[name] === "function",
  );
}

/** The messages of one call on their way to the handler. */
class CallMemory {
  readonly #call: InnerCall;
  readonly #memory: RequestMemory;
  readonly #maxSize: number;
  readonly #shares: SharesOfMessages;
  readonly #over = new AbortController();
  /** Counts the message that has not come in full. */
  readonly #incoming: RequestShare;
  /** Shares of messages that the handler has not taken over. */
  readonly #own = new Set<RequestShare>();

  constructor(call: InnerCall, memory: RequestMemory, maxSize: number, shares: SharesOfMessages) {
    this.#call = call;
    this.#memory = memory;
    this.#maxSize = maxSize;
    this.#shares = shares;
    this.#incoming = memory.share();
  }

  /** Puts the limits around the methods of the call. */
  attach(): void {
    const call = this.#call;
    const { handleDataFrame, notifyOnCancel, sendStatus } = call;
    call.handleDataFrame = (data) => {
      if (call.cancelNotified) return;
      try {
        this.#incoming.take(data.length);
      } catch (error) {
        call.sendStatus(toStatus(error));
        return;
      }
      handleDataFrame.call(call, data);
    };
    call.decompressMessage = (message, encoding) => this.#unpack(message, encoding);
    call.sendStatus = (status) => sendStatus.call(call, this.#worded(status));
    call.notifyOnCancel = () => {
      this.#release();
      notifyOnCancel.call(call);
    };
  }

  /** @param message with its header */
  #unpack(message: Buffer, encoding: string): Buffer | Promise<Buffer> {
    const share = this.#incoming.split(message.length);
    this.#own.add(share);
    const takeOver = () => void this.#own.delete(share);
    const content = message.subarray(HEADER_BYTES);
    if (encoding === "identity") {
      this.#shares.set(content, { share, takeOver });
      return content;
    }
    const limits = { memory: this.#memory, share, maxSize: this.#maxSize, signal: this.#over.signal };
    return unpackMessage(content, encoding, limits).then(
      (unpacked) => {
        this.#shares.set(unpacked, { share, takeOver });
        return unpacked;
      },
      (error) => {
        throw toStatus(error);
      },
    );
  }

  /** Names the option in grpc-js' own refusal of a large message. */
  #worded(status: Status): Status {
    const [, size] = /^Received message larger than max \((\d+) vs/.exec(status.details) ?? [];
    return size === undefined ? status : { ...status, details: tooLarge(Number(size), this.#maxSize) };
  }

  #release(): void {
    this.#over.abort();
    this.#incoming.release();
    for (const share of this.#own) share.release();
    this.#own.clear();
  }
}

/** An error as the status in which grpc-js tells of it. */
function toStatus(error: unknown): Status {
  if (error instanceof RefusedCall) return { code: error.code, details: error.details };
  const { code, details, retryAfterMs } = statusFromError(TritonError.from(error));
  const metadata = new Metadata();
  if (retryAfterMs !== undefined) metadata.set(RETRY_PUSHBACK, String(retryAfterMs));
  return { code, details, metadata };
}
