import type { inference } from "@tritonjs/protocol/grpc";
import {
  type EndListener,
  epochNow,
  type LoadCarrier,
  type LoadRequest,
  outputFault,
  outputsJson,
} from "./carrier.js";
import {
  decodeStreamMessage,
  type GrpcCarrierParts,
  grpcFailure,
  MessageAssembler,
  outputTensors,
} from "./grpc-carrier.js";
import type { ClientCall, Http2Session, Http2Stream } from "./http2-session.js";

/** Streams that a thread opens at most; further requests share them. */
const MOST_STREAMS = 512;

/**
 * Sends requests on streams of `ModelStreamInfer`. A stream has one request in flight as long as there are streams
 * enough. All requests of a sequence go over one stream, which keeps their order.
 */
export class StreamLoadCarrier implements LoadCarrier, StreamOwner {
  readonly #parts: GrpcCarrierParts;
  readonly #onEnd: EndListener;
  readonly #isDecoupled: boolean;
  readonly #streams: InferStream[] = [];
  readonly #ofSequence = new Map<number, InferStream>();
  #next = 0;

  constructor(parts: GrpcCarrierParts, isDecoupled: boolean, onEnd: EndListener) {
    this.#parts = parts;
    this.#isDecoupled = isDecoupled;
    this.#onEnd = onEnd;
  }

  get bytesSent(): number {
    return this.#parts.sessions.bytesSent;
  }

  get bytesReceived(): number {
    return this.#parts.sessions.bytesReceived;
  }

  send(request: LoadRequest): void {
    const stream = this.#streamFor(request);
    const { requests } = this.#parts;
    requests.stamp(request);
    request.carried = stream;
    request.sent = epochNow();
    if (stream === undefined) this.fault(request, "the server accepts no further stream", false);
    else stream.send(request, requests.prefix!, requests.rest);
  }

  cancel(request: LoadRequest, text: string): void {
    (request.carried as InferStream | undefined)?.forget(request);
    request.fail(text);
    this.#ended(request);
  }

  close(): void {
    this.#streams.length = 0;
    this.#parts.sessions.close();
  }

  /** For streams. */
  responded(request: LoadRequest, response: inference.ModelInferResponse.$Properties, now: number): boolean {
    const isEmpty = (response.outputs?.length ?? 0) === 0;
    const isFinal = response.parameters?.triton_final_response?.boolParam === true;
    if (!isEmpty) {
      request.responded(now);
      request.end = now;
      this.#read(request, response);
    }
    const isOver = this.#isDecoupled ? isFinal : true;
    if (isOver) this.#ended(request);
    return isOver;
  }

  /** For streams. */
  fault(request: LoadRequest, text: string, isConnectionLost: boolean): void {
    request.fail(text);
    request.isConnectionLost = isConnectionLost;
    request.end = epochNow();
    this.#ended(request);
  }

  /** For streams. */
  closed(stream: InferStream): void {
    const index = this.#streams.indexOf(stream);
    if (index >= 0) this.#streams.splice(index, 1);
    for (const [id, of] of this.#ofSequence) if (of === stream) this.#ofSequence.delete(id);
  }

  #read(request: LoadRequest, response: inference.ModelInferResponse.$Properties): void {
    const { expected, handling } = this.#parts;
    const outputs = expected?.[request.payload];
    if (outputs === undefined && !handling.keepOutputs) return;
    try {
      const tensors = outputTensors(response);
      if (handling.keepOutputs) request.responseOutputs?.push(outputsJson(tensors));
      const fault = outputs && outputFault(outputs, tensors);
      if (fault !== undefined) request.fail(fault);
    } catch (cause) {
      request.fail(`cannot read the response: ${(cause as Error).message}`);
    }
  }

  #ended(request: LoadRequest): void {
    request.carried = undefined;
    // An empty final response says nothing of the time until the last one with outputs.
    if (Number.isNaN(request.end)) request.end = epochNow();
    if (request.sequenceEnd) this.#ofSequence.delete(request.sequenceId);
    this.#onEnd(request);
  }

  #streamFor({ sequenceId }: LoadRequest): InferStream | undefined {
    const known = sequenceId === 0 ? undefined : this.#ofSequence.get(sequenceId);
    if (known !== undefined) return known;
    const stream = this.#streams.find((one) => one.inFlight === 0) ?? this.#open() ?? this.#shared();
    if (sequenceId !== 0 && stream !== undefined) this.#ofSequence.set(sequenceId, stream);
    return stream;
  }

  #open(): InferStream | undefined {
    const session = this.#streams.length < MOST_STREAMS ? this.#parts.sessions.take() : undefined;
    if (session === undefined) return undefined;
    const stream = new InferStream(this, session);
    this.#streams.push(stream);
    return stream;
  }

  #shared(): InferStream | undefined {
    const { length } = this.#streams;
    return length === 0 ? undefined : this.#streams[this.#next++ % length];
  }
}

/** What a stream tells its carrier. */
interface StreamOwner {
  /** A response came. Returns whether the request has ended with it. */
  responded(request: LoadRequest, response: inference.ModelInferResponse.$Properties, now: number): boolean;
  fault(request: LoadRequest, text: string, isConnectionLost: boolean): void;
  closed(stream: InferStream): void;
}

/** One call of `ModelStreamInfer`: its requests and responses belong together by their ids. */
class InferStream implements ClientCall {
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
