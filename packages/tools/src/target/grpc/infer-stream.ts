import type { inference } from "@tritonjs/grpc-messages";
import { epochNow } from "../epoch-time.js";
import type { ClientCall } from "../http2/client-call.js";
import type { Http2Session, Http2Stream } from "../http2/http2-session.js";
import type { LoadRequest } from "../load-request.js";
import { grpcFailure } from "./grpc-status.js";
import { decodeStreamMessage } from "./infer-response.js";
import { MessageAssembler } from "./message-assembler.js";

/** What a stream tells its carrier. */
export interface StreamOwner {
  /** A response came. Returns whether the request has ended with it. */
  responded(request: LoadRequest, response: inference.ModelInferResponse.$Properties, now: number): boolean;
  fault(request: LoadRequest, text: string, isConnectionLost: boolean): void;
  closed(stream: InferStream): void;
}

/** One call of `ModelStreamInfer`: its requests and responses belong together by their ids. */
export class InferStream implements ClientCall {
  readonly #owner: StreamOwner;
  readonly #session: Http2Session;
  readonly #assembler = new MessageAssembler();
  /** Requests in flight by their numbers, which are their ids. */
  readonly #requests = new Map<number, LoadRequest>();
  #unsent: LoadRequest[] = [];
  #stream: Http2Stream | undefined;
  #headers: ReadonlyMap<string, string> | undefined;
  #encoding = "";

  constructor(owner: StreamOwner, session: Http2Session) {
    this.#owner = owner;
    this.#session = session;
  }

  get inFlight(): number {
    return this.#requests.size;
  }

  send(request: LoadRequest, prefix: Buffer, rest: Buffer): void {
    this.#requests.set(request.number, request);
    this.#unsent.push(request);
    if (this.#stream === undefined) this.#stream = this.#session.start(this, prefix, rest, false);
    else this.#session.write(this.#stream, [prefix, rest]);
  }

  /** Ignores further responses to a request. */
  forget(request: LoadRequest): void {
    this.#requests.delete(request.number);
  }

  onSent(): void {
    const now = epochNow();
    for (const request of this.#unsent) if (request.carried === this) request.sendEnd = now;
    this.#unsent = [];
  }

  onHeaders(headers: ReadonlyMap<string, string>): void {
    this.#encoding ||= headers.get("grpc-encoding") ?? "";
    this.#headers = headers;
  }

  onData(bytes: Buffer): void {
    const now = epochNow();
    try {
      for (const message of this.#assembler.add(bytes, this.#encoding)) this.#read(message, now);
    } catch (cause) {
      if (this.#stream !== undefined) this.#session.reset(this.#stream);
      this.#end(`cannot read the response: ${(cause as Error).message}`, false);
    }
  }

  onEnd(): void {
    const failure = grpcFailure(this.#headers ?? new Map());
    // Errors of single requests come as messages, so this is the server's, which should be left in peace for a while.
    this.#end(failure ?? "the server ended the stream before its responses", true);
  }

  onFault(text: string, isConnectionLost: boolean): void {
    this.#end(text, isConnectionLost);
  }

  #read(bytes: Buffer, now: number): void {
    const { errorMessage, inferResponse } = decodeStreamMessage(bytes);
    const id = inferResponse?.id ?? "";
    // Errors of some servers have no id: they answer the oldest request.
    const [oldest] = this.#requests.values();
    const request = id === "" ? oldest : this.#requests.get(Number(id));
    if (request === undefined) return;
    // The carrier may use the object again as soon as the request has ended.
    const { number } = request;
    this.#requests.delete(number);
    if (errorMessage) this.#owner.fault(request, errorMessage, false);
    else if (inferResponse == null || !this.#owner.responded(request, inferResponse, now))
      this.#requests.set(number, request);
  }

  #end(text: string, isConnectionLost: boolean): void {
    this.#owner.closed(this);
    const requests = [...this.#requests.values()];
    this.#requests.clear();
    for (const request of requests) this.#owner.fault(request, text, isConnectionLost);
  }
}
