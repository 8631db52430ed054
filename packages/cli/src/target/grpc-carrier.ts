import type { Compression } from "@tritonjs/client/http";
import { isDataType, Tensor, TritonError } from "@tritonjs/protocol";
import { decodeMessage, inference, typedElements } from "@tritonjs/protocol/grpc";
import {
  type EndListener,
  type ExpectedOutputs,
  epochNow,
  type LoadCarrier,
  type LoadRequest,
  outputFault,
  outputsJson,
  type ResponseHandling,
} from "./carrier.js";
import { MESSAGE_HEAD_BYTES } from "./grpc-templates.js";
import type { HeaderBlocks } from "./hpack.js";
import { type ClientCall, Http2Session, type Http2Stream } from "./http2-session.js";
import { type Endpoint, MOST_CONNECTIONS } from "./target-options.js";
import { decompressBytes, type StampedRequests } from "./wire-template.js";

/** Reads the outputs of responses, where they are compared or kept. */
export class GrpcAnswers {
  readonly #keepsOutputs: boolean;

  constructor(
    private readonly expected: ExpectedOutputs | undefined,
    { keepOutputs }: ResponseHandling,
  ) {
    this.#keepsOutputs = keepOutputs;
  }

  wants({ payload }: LoadRequest): boolean {
    return this.#keepsOutputs || this.expected?.[payload] !== undefined;
  }

  /** @param responseOf decodes the response. Its errors fail the request. */
  read(request: LoadRequest, responseOf: () => inference.ModelInferResponse.$Properties): void {
    if (!this.wants(request)) return;
    try {
      const tensors = outputTensors(responseOf());
      if (this.#keepsOutputs) request.responseOutputs?.push(outputsJson(tensors));
      const expected = this.expected?.[request.payload];
      const fault = expected && outputFault(expected, tensors);
      if (fault !== undefined) request.fail(fault);
    } catch (cause) {
      request.fail(`cannot read the response: ${(cause as Error).message}`);
    }
  }
}

/** Sends each request as a call of `ModelInfer`. */
export class GrpcLoadCarrier implements LoadCarrier {
  readonly #waiting: LoadRequest[] = [];

  constructor(
    private readonly sessions: SessionPool,
    private readonly requests: StampedRequests,
    private readonly answers: GrpcAnswers,
    private readonly onEnd: EndListener,
  ) {}

  get bytesSent(): number {
    return this.sessions.bytesSent;
  }

  get bytesReceived(): number {
    return this.sessions.bytesReceived;
  }

  send(request: LoadRequest): void {
    const session = this.sessions.take();
    if (session === undefined) this.#waiting.push(request);
    else this.#sendOver(session, request);
  }

  cancel(request: LoadRequest, text: string): void {
    const waiting = this.#waiting.indexOf(request);
    if (waiting >= 0) this.#waiting.splice(waiting, 1);
    (request.carried as UnaryCall | undefined)?.cancel();
    if (Number.isNaN(request.sent)) request.sent = epochNow();
    request.fail(text);
    this.ended(request);
  }

  close(): void {
    this.#waiting.length = 0;
    this.sessions.close();
  }

  ended(request: LoadRequest): void {
    request.carried = undefined;
    request.end = epochNow();
    const next = this.#waiting.shift();
    if (next !== undefined) this.send(next);
    this.onEnd(request);
  }

  #sendOver(session: Http2Session, request: LoadRequest): void {
    this.requests.stamp(request);
    const call = new UnaryCall(this, session, request, this.answers);
    request.carried = call;
    request.sent = epochNow();
    call.stream = session.start(call, this.requests.prefix, this.requests.rest, true);
  }
}

class UnaryCall implements ClientCall {
  stream: Http2Stream | undefined;
  #headers: ReadonlyMap<string, string> | undefined;
  #encoding = "";
  #assembler: MessageAssembler | undefined;
  #messages: Buffer[] = [];
  #isOver = false;

  constructor(
    private readonly carrier: GrpcLoadCarrier,
    private readonly session: Http2Session,
    private readonly request: LoadRequest,
    private readonly answers: GrpcAnswers,
  ) {
    if (answers.wants(request)) this.#assembler = new MessageAssembler();
  }

  onSent(): void {
    if (!this.#isOver) this.request.sendEnd = epochNow();
  }

  onHeaders(headers: ReadonlyMap<string, string>): void {
    this.#encoding ||= headers.get("grpc-encoding") ?? "";
    this.#headers = headers;
  }

  onData(bytes: Buffer): void {
    if (this.request.responses === 0) this.request.responded(epochNow());
    if (this.#assembler === undefined) return;
    try {
      this.#messages.push(...this.#assembler.add(bytes, this.#encoding));
    } catch (cause) {
      this.request.fail(`cannot read the response: ${(cause as Error).message}`);
    }
  }

  onEnd(): void {
    const failure = grpcFailure(this.#headers ?? new Map());
    if (failure !== undefined) this.request.fail(failure);
    else this.answers.read(this.request, () => this.#response());
    this.#end();
  }

  onFault(text: string, isConnectionLost: boolean): void {
    this.request.fail(text);
    this.request.isConnectionLost = isConnectionLost;
    this.#end();
  }

  cancel(): void {
    this.#isOver = true;
    if (this.stream !== undefined) this.session.reset(this.stream);
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.carrier.ended(this.request);
  }

  #response(): inference.ModelInferResponse.$Properties {
    const [message] = this.#messages;
    if (message === undefined) throw new Error("expected a message, got none");
    return decodeMessage(inference.ModelInferResponse, message);
  }
}

/** Calls in flight on a connection before a further one is opened. */
const CALLS_PER_CONNECTION = 8;

export class SessionPool {
  readonly #sessions: Http2Session[] = [];
  #closedSent = 0;
  #closedReceived = 0;

  constructor(
    private readonly endpoint: Endpoint,
    private readonly blocks: HeaderBlocks,
  ) {}

  get bytesSent(): number {
    return this.#sessions.reduce((sum, { bytesSent }) => sum + bytesSent, this.#closedSent);
  }

  get bytesReceived(): number {
    return this.#sessions.reduce((sum, { bytesReceived }) => sum + bytesReceived, this.#closedReceived);
  }

  /** A connection for a call; undefined when all have as many calls as their servers permit. */
  take(): Http2Session | undefined {
    let least: Http2Session | undefined;
    for (const session of this.#sessions) {
      if (!session.hasRoom) continue;
      if (session.openCalls < CALLS_PER_CONNECTION) return session;
      if (least === undefined || session.openCalls < least.openCalls) least = session;
    }
    return this.#sessions.length < MOST_CONNECTIONS ? this.#open() : least;
  }

  close(): void {
    for (const session of this.#sessions.splice(0)) session.destroy();
  }

  #open(): Http2Session {
    const session: Http2Session = new Http2Session(this.endpoint, this.blocks, () => this.#remove(session));
    this.#sessions.push(session);
    return session;
  }

  #remove(session: Http2Session): void {
    const index = this.#sessions.indexOf(session);
    if (index < 0) return;
    this.#sessions.splice(index, 1);
    this.#closedSent += session.bytesSent;
    this.#closedReceived += session.bytesReceived;
  }
}

/** Takes messages out of the data of a gRPC call. */
class MessageAssembler {
  #chunks: Buffer[] = [];
  #length = 0;

  /** Returns the messages that are complete, which own their bytes. */
  add(data: Buffer, encoding: string): Buffer[] {
    this.#chunks.push(Buffer.from(data));
    this.#length += data.length;
    const messages: Buffer[] = [];
    while (this.#length >= MESSAGE_HEAD_BYTES) {
      if (this.#chunks[0]!.length < MESSAGE_HEAD_BYTES) this.#join();
      const end = MESSAGE_HEAD_BYTES + this.#chunks[0]!.readUInt32BE(1);
      if (this.#length < end) break;
      this.#join();
      const bytes = this.#chunks[0]!;
      const message = bytes.subarray(MESSAGE_HEAD_BYTES, end);
      messages.push(bytes[0] === 1 ? decompressBytes(message, encoding as Compression) : message);
      this.#length -= end;
      this.#chunks = this.#length === 0 ? [] : [bytes.subarray(end)];
    }
    return messages;
  }

  #join(): void {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)];
  }
}

function outputTensors(response: inference.ModelInferResponse.$Properties): Map<string, Tensor> {
  const raw = response.rawOutputContents ?? [];
  return new Map(
    (response.outputs ?? []).map((output, i) => {
      const name = output.name ?? "";
      const datatype = output.datatype ?? "";
      if (!isDataType(datatype))
        throw new TritonError("INTERNAL", `output '${name}': unknown datatype '${datatype}'`);
      const shape = (output.shape ?? []).map(Number);
      const bytes = raw[i];
      if (bytes !== undefined) return [name, Tensor.fromBytes(datatype, shape, bytes)];
      const elements = typedElements(output.contents ?? {}, datatype, `output '${name}'`);
      if (elements === undefined) throw new TritonError("INTERNAL", `output '${name}' has no contents`);
      return [name, Tensor.fromElements(datatype, shape, elements as never)];
    }),
  );
}

const NAMES = [
  "OK",
  "CANCELLED",
  "UNKNOWN",
  "INVALID_ARGUMENT",
  "DEADLINE_EXCEEDED",
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "PERMISSION_DENIED",
  "RESOURCE_EXHAUSTED",
  "FAILED_PRECONDITION",
  "ABORTED",
  "OUT_OF_RANGE",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
  "DATA_LOSS",
  "UNAUTHENTICATED",
];

/** Text of the failure in headers or trailers, as Triton's Python client writes it. Undefined for success. */
function grpcFailure(headers: ReadonlyMap<string, string>): string | undefined {
  const status = headers.get("grpc-status");
  if (status === "0") return undefined;
  if (status === undefined)
    return `expected a gRPC status, got HTTP status ${headers.get(":status") ?? "none"}`;
  const name = NAMES[Number(status)] ?? status;
  return `[StatusCode.${name}] ${decoded(headers.get("grpc-message") ?? "")}`;
}

function decoded(message: string): string {
  try {
    return decodeURIComponent(message);
  } catch {
    return message;
  }
}

/** Streams that a thread opens at most; further requests share them. */
const MOST_STREAMS = 512;

/**
 * Sends requests on streams of `ModelStreamInfer`. A stream has one request in flight as long as there are streams
 * enough. All requests of a sequence go over one stream, which keeps their order.
 */
export class StreamLoadCarrier implements LoadCarrier {
  readonly #streams: InferStream[] = [];
  readonly #ofSequence = new Map<number, InferStream>();
  #next = 0;

  constructor(
    private readonly sessions: SessionPool,
    private readonly requests: StampedRequests,
    private readonly answers: GrpcAnswers,
    private readonly onEnd: EndListener,
    private readonly isDecoupled: boolean,
  ) {}

  get bytesSent(): number {
    return this.sessions.bytesSent;
  }

  get bytesReceived(): number {
    return this.sessions.bytesReceived;
  }

  send(request: LoadRequest): void {
    const stream = this.#streamFor(request);
    this.requests.stamp(request);
    request.carried = stream;
    request.sent = epochNow();
    if (stream === undefined) this.fault(request, "the server accepts no further stream", false);
    else stream.send(request, this.requests.prefix!, this.requests.rest);
  }

  cancel(request: LoadRequest, text: string): void {
    (request.carried as InferStream | undefined)?.forget(request);
    request.fail(text);
    this.#ended(request);
  }

  close(): void {
    this.#streams.length = 0;
    this.sessions.close();
  }

  /** For streams: a response came. Returns whether the request has ended with it. */
  responded(request: LoadRequest, response: inference.ModelInferResponse.$Properties, now: number): boolean {
    const isEmpty = (response.outputs?.length ?? 0) === 0;
    const isFinal = response.parameters?.triton_final_response?.boolParam === true;
    if (!isEmpty) {
      request.responded(now);
      request.end = now;
      this.answers.read(request, () => response);
    }
    const isOver = this.isDecoupled ? isFinal : true;
    if (isOver) this.#ended(request);
    return isOver;
  }

  fault(request: LoadRequest, text: string, isConnectionLost: boolean): void {
    request.fail(text);
    request.isConnectionLost = isConnectionLost;
    request.end = epochNow();
    this.#ended(request);
  }

  closed(stream: InferStream): void {
    const index = this.#streams.indexOf(stream);
    if (index >= 0) this.#streams.splice(index, 1);
    for (const [id, of] of this.#ofSequence) if (of === stream) this.#ofSequence.delete(id);
  }

  #ended(request: LoadRequest): void {
    request.carried = undefined;
    // An empty final response says nothing of the time until the last one with outputs.
    if (Number.isNaN(request.end)) request.end = epochNow();
    if (request.sequenceEnd) this.#ofSequence.delete(request.sequenceId);
    this.onEnd(request);
  }

  #streamFor({ sequenceId }: LoadRequest): InferStream | undefined {
    const known = sequenceId === 0 ? undefined : this.#ofSequence.get(sequenceId);
    if (known !== undefined) return known;
    const stream = this.#streams.find((one) => one.inFlight === 0) ?? this.#open() ?? this.#shared();
    if (sequenceId !== 0 && stream !== undefined) this.#ofSequence.set(sequenceId, stream);
    return stream;
  }

  #open(): InferStream | undefined {
    const session = this.#streams.length < MOST_STREAMS ? this.sessions.take() : undefined;
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

/** One call of `ModelStreamInfer`: its requests and responses belong together by their ids. */
class InferStream implements ClientCall {
  readonly #assembler = new MessageAssembler();
  /** Requests in flight by their numbers, which are their ids. */
  readonly #requests = new Map<number, LoadRequest>();
  #unsent: LoadRequest[] = [];
  #stream: Http2Stream | undefined;
  #headers: ReadonlyMap<string, string> | undefined;
  #encoding = "";

  constructor(
    private readonly carrier: StreamLoadCarrier,
    private readonly session: Http2Session,
  ) {}

  get inFlight(): number {
    return this.#requests.size;
  }

  send(request: LoadRequest, prefix: Buffer, rest: Buffer): void {
    this.#requests.set(request.number, request);
    this.#unsent.push(request);
    if (this.#stream === undefined) this.#stream = this.session.start(this, prefix, rest, false);
    else this.session.write(this.#stream, [prefix, rest]);
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
      if (this.#stream !== undefined) this.session.reset(this.#stream);
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
    const { errorMessage, inferResponse } = decodeMessage(inference.ModelStreamInferResponse, bytes);
    const id = inferResponse?.id ?? "";
    // Errors of some servers have no id: they answer the oldest request.
    const [oldest] = this.#requests.values();
    const request = id === "" ? oldest : this.#requests.get(Number(id));
    if (request === undefined) return;
    // The carrier may use the object again as soon as the request has ended.
    const { number } = request;
    this.#requests.delete(number);
    if (errorMessage) this.carrier.fault(request, errorMessage, false);
    else if (inferResponse == null || !this.carrier.responded(request, inferResponse, now))
      this.#requests.set(number, request);
  }

  #end(text: string, isConnectionLost: boolean): void {
    this.carrier.closed(this);
    const requests = [...this.#requests.values()];
    this.#requests.clear();
    for (const request of requests) this.carrier.fault(request, text, isConnectionLost);
  }
}
