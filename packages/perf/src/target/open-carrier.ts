import type { Compression } from "@tritonjs/client/internal";
import { isDataType, Tensor, TritonError } from "@tritonjs/protocol";
import { decodeMessage, inference, typedElements } from "@tritonjs/protocol/grpc";
import {
  type EndListener,
  type ExpectedOutputs,
  epochNow,
  type LoadCarrier,
  type LoadRequest,
  OutputReader,
} from "./carrier.js";
import { compressedMessage, MESSAGE_HEAD_BYTES, PROTOBUF_STAMPS } from "./grpc-templates.js";
import { HttpLoadCarrier } from "./http-carrier.js";
import { InferAnswers, JSON_STAMPS } from "./http-inference.js";
import { type HeaderBlocks, headerBlocks } from "./http2-frames.js";
import { type ClientCall, Http2Session, type Http2Stream } from "./http2-session.js";
import { type ConversationPlan, Conversations, OpenAiAnswers } from "./openai-target.js";
import { type Endpoint, MOST_CONNECTIONS } from "./target-options.js";
import { decompressBytes, StampedRequests, type WireTemplates } from "./wire-template.js";

export function openCarrier(plan: RemoteCarrierPlan, seed: number, onEnd: EndListener): LoadCarrier {
  const { endpoint, templates, expected, keepsOutputs } = plan;
  const outputs = new OutputReader(expected, keepsOutputs);
  if (plan.kind === "grpc") {
    const pack = plan.compression && compressedMessage(plan.compression);
    const requests = new StampedRequests(templates, { ...PROTOBUF_STAMPS, pack }, seed);
    if (!plan.streaming) return new UnaryLoadCarrier(endpoint, plan.headers, requests, outputs, onEnd);
    return new StreamLoadCarrier(endpoint, plan.headers, requests, outputs, onEnd, plan.decoupled);
  }
  const conversations = plan.kind === "openai" && plan.conversations && new Conversations(plan.conversations);
  const requests = conversations || new StampedRequests(templates, JSON_STAMPS, seed);
  const openAnswers = () =>
    plan.kind === "http"
      ? new InferAnswers(outputs)
      : new OpenAiAnswers(keepsOutputs, conversations || undefined);
  return new HttpLoadCarrier(endpoint, requests, openAnswers, onEnd);
}

/** A target over a network, for every thread. It survives structured cloning. */
interface RemotePlan {
  readonly endpoint: Endpoint;
  readonly templates: WireTemplates;
  readonly expected?: ExpectedOutputs;
  /** Records the outputs of each response as JSON text. */
  readonly keepsOutputs: boolean;
}

interface HttpPlan extends RemotePlan {
  readonly kind: "http";
}

interface OpenAiPlan extends RemotePlan {
  readonly kind: "openai";
  readonly conversations?: ConversationPlan;
}

interface GrpcPlan extends RemotePlan {
  readonly kind: "grpc";
  readonly streaming: boolean;
  readonly decoupled: boolean;
  /** Compression of each message when it is sent; absent where the prepared messages are compressed. */
  readonly compression?: Compression;
  readonly headers: readonly (readonly [name: string, value: string])[];
}

export type RemoteCarrierPlan = HttpPlan | OpenAiPlan | GrpcPlan;

type InferResponse = inference.ModelInferResponse.$Properties;

/** Calls in flight on a connection before a further one is opened. */
const CALLS_PER_CONNECTION = 8;

/** Sends requests over connections that it opens when they are needed. */
abstract class GrpcLoadCarrier implements LoadCarrier {
  readonly #blocks: HeaderBlocks;
  readonly #sessions: Http2Session[] = [];
  #closedSent = 0;
  #closedReceived = 0;

  constructor(
    private readonly endpoint: Endpoint,
    headers: Parameters<typeof headerBlocks>[0],
    protected readonly requests: StampedRequests,
    protected readonly outputs: OutputReader,
    protected readonly onEnd: EndListener,
    protected readonly isDecoupled = false,
  ) {
    this.#blocks = headerBlocks(headers);
  }

  get bytesSent(): number {
    return this.#sessions.reduce((sum, { bytesSent }) => sum + bytesSent, this.#closedSent);
  }

  get bytesReceived(): number {
    return this.#sessions.reduce((sum, { bytesReceived }) => sum + bytesReceived, this.#closedReceived);
  }

  abstract send(request: LoadRequest): void;
  abstract cancel(request: LoadRequest, text: string): void;

  close(): void {
    for (const session of this.#sessions.splice(0)) session.destroy();
  }

  /** A connection for a call; undefined when all have as many calls as their servers permit. */
  protected session(): Http2Session | undefined {
    let least: Http2Session | undefined;
    for (const session of this.#sessions) {
      if (!session.hasRoom) continue;
      if (session.openCalls < CALLS_PER_CONNECTION) return session;
      if (least === undefined || session.openCalls < least.openCalls) least = session;
    }
    return this.#sessions.length < MOST_CONNECTIONS ? this.#open() : least;
  }

  #open(): Http2Session {
    const session: Http2Session = new Http2Session(this.endpoint, this.#blocks, () => {
      const index = this.#sessions.indexOf(session);
      if (index < 0) return;
      this.#sessions.splice(index, 1);
      this.#closedSent += session.bytesSent;
      this.#closedReceived += session.bytesReceived;
    });
    this.#sessions.push(session);
    return session;
  }
}

const NO_HEADERS: ReadonlyMap<string, string> = new Map();

const STATUS_NAMES = (
  "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED " +
  "RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS " +
  "UNAUTHENTICATED"
).split(" ");

/** A call: takes the status out of its headers, and the messages out of its data. */
abstract class GrpcCall implements ClientCall {
  stream: Http2Stream | undefined;
  #headers = NO_HEADERS;
  #encoding = "";
  #chunks: Buffer[] = [];
  #length = 0;

  constructor(protected readonly session: Http2Session) {}

  abstract onSent(): void;
  abstract onData(bytes: Buffer): void;
  abstract onEnd(): void;
  abstract onFault(text: string, isConnectionLost: boolean): void;

  onHeaders(headers: ReadonlyMap<string, string>): void {
    this.#encoding ||= headers.get("grpc-encoding") ?? "";
    this.#headers = headers;
  }

  /** Text of the failure, as Triton's Python client writes it; undefined for success. */
  protected get failure(): string | undefined {
    const status = this.#headers.get("grpc-status");
    if (status === "0") return undefined;
    if (status === undefined)
      return `expected a gRPC status, got HTTP status ${this.#headers.get(":status") ?? "none"}`;
    let message = this.#headers.get("grpc-message") ?? "";
    try {
      message = decodeURIComponent(message);
    } catch {
      // It is shown as it came.
    }
    return `[StatusCode.${STATUS_NAMES[Number(status)] ?? status}] ${message}`;
  }

  /** Returns the messages that are complete with the data, which own their bytes. */
  protected messagesOf(data: Buffer): Buffer[] {
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
      messages.push(bytes[0] === 1 ? decompressBytes(message, this.#encoding as Compression) : message);
      this.#length -= end;
      this.#chunks = this.#length === 0 ? [] : [bytes.subarray(end)];
    }
    return messages;
  }

  #join(): void {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)];
  }
}

/** @throws Error for a response that cannot be read. */
function outputTensors({ outputs, rawOutputContents: raw }: InferResponse): Map<string, Tensor> {
  return new Map(
    (outputs ?? []).map((output, i) => {
      const name = output.name ?? "";
      const datatype = output.datatype ?? "";
      if (!isDataType(datatype))
        throw new TritonError("INTERNAL", `output '${name}': unknown datatype '${datatype}'`);
      const shape = (output.shape ?? []).map(Number);
      const bytes = raw?.[i];
      if (bytes !== undefined) return [name, Tensor.fromBytes(datatype, shape, bytes)];
      const elements = typedElements(output.contents ?? {}, datatype, `output '${name}'`);
      if (elements === undefined) throw new TritonError("INTERNAL", `output '${name}' has no contents`);
      return [name, Tensor.fromElements(datatype, shape, elements as never)];
    }),
  );
}

/** Sends each request as a call of `ModelInfer`. */
class UnaryLoadCarrier extends GrpcLoadCarrier {
  readonly #waiting: LoadRequest[] = [];

  send(request: LoadRequest): void {
    const session = this.session();
    if (session === undefined) {
      this.#waiting.push(request);
      return;
    }
    this.requests.stamp(request);
    const call = new UnaryCall(session, request, this.outputs, () => this.#ended(request));
    request.carried = call;
    request.sent = epochNow();
    call.stream = session.start(call, this.requests.prefix, this.requests.rest, true);
  }

  cancel(request: LoadRequest, text: string): void {
    const waiting = this.#waiting.indexOf(request);
    if (waiting >= 0) this.#waiting.splice(waiting, 1);
    (request.carried as UnaryCall | undefined)?.cancel();
    if (Number.isNaN(request.sent)) request.sent = epochNow();
    request.fail(text);
    this.#ended(request);
  }

  override close(): void {
    this.#waiting.length = 0;
    super.close();
  }

  #ended(request: LoadRequest): void {
    request.carried = undefined;
    request.end = epochNow();
    const next = this.#waiting.shift();
    if (next !== undefined) this.send(next);
    this.onEnd(request);
  }
}

class UnaryCall extends GrpcCall {
  readonly #messages: Buffer[] = [];
  #isOver = false;

  constructor(
    session: Http2Session,
    private readonly request: LoadRequest,
    private readonly outputs: OutputReader,
    private readonly ended: () => void,
  ) {
    super(session);
  }

  onSent(): void {
    if (!this.#isOver) this.request.sendEnd = epochNow();
  }

  onData(bytes: Buffer): void {
    if (this.request.responses === 0) this.request.responded(epochNow());
    if (!this.outputs.wants(this.request)) return;
    try {
      this.#messages.push(...this.messagesOf(bytes));
    } catch (cause) {
      this.request.fail(`cannot read the response: ${(cause as Error).message}`);
    }
  }

  onEnd(): void {
    const { failure } = this;
    if (failure !== undefined) this.request.fail(failure);
    else
      this.outputs.read(this.request, () => {
        const [message] = this.#messages;
        if (message === undefined) throw new Error("expected a message, got none");
        return outputTensors(decodeMessage(inference.ModelInferResponse, message));
      });
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
    this.ended();
  }
}

/** Streams that a thread opens at most; further requests share them. */
const MOST_STREAMS = 512;

/**
 * Sends requests on streams of `ModelStreamInfer`. A stream has one request in flight as long as there are streams
 * enough. All requests of a sequence go over one stream, which keeps their order.
 */
class StreamLoadCarrier extends GrpcLoadCarrier {
  readonly #streams: InferStream[] = [];
  readonly #ofSequence = new Map<number, InferStream>();
  #next = 0;

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

  override close(): void {
    this.#streams.length = 0;
    super.close();
  }

  /** For streams: a response came. Returns whether the request has ended with it. */
  responded(request: LoadRequest, response: InferResponse, now: number): boolean {
    const isEmpty = (response.outputs?.length ?? 0) === 0;
    const isFinal = response.parameters?.triton_final_response?.boolParam === true;
    if (!isEmpty) {
      request.responded(now);
      request.end = now;
      this.outputs.read(request, () => outputTensors(response));
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
    const stream =
      this.#streams.find((one) => one.inFlight === 0) ??
      this.#open() ??
      this.#streams[this.#next++ % this.#streams.length];
    if (sequenceId !== 0 && stream !== undefined) this.#ofSequence.set(sequenceId, stream);
    return stream;
  }

  #open(): InferStream | undefined {
    const session = this.#streams.length < MOST_STREAMS ? this.session() : undefined;
    if (session === undefined) return undefined;
    const stream = new InferStream(session, this);
    this.#streams.push(stream);
    return stream;
  }
}

/** One call of `ModelStreamInfer`: its requests and responses belong together by their ids. */
class InferStream extends GrpcCall {
  /** Requests in flight by their numbers, which are their ids. */
  readonly #requests = new Map<number, LoadRequest>();
  #unsent: LoadRequest[] = [];

  constructor(
    session: Http2Session,
    private readonly carrier: StreamLoadCarrier,
  ) {
    super(session);
  }

  get inFlight(): number {
    return this.#requests.size;
  }

  send(request: LoadRequest, prefix: Buffer, rest: Buffer): void {
    this.#requests.set(request.number, request);
    this.#unsent.push(request);
    if (this.stream === undefined) this.stream = this.session.start(this, prefix, rest, false);
    else this.session.write(this.stream, [prefix, rest]);
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

  onData(bytes: Buffer): void {
    const now = epochNow();
    try {
      for (const message of this.messagesOf(bytes)) this.#read(message, now);
    } catch (cause) {
      if (this.stream !== undefined) this.session.reset(this.stream);
      this.onFault(`cannot read the response: ${(cause as Error).message}`, false);
    }
  }

  onEnd(): void {
    // Errors of single requests come as messages, so this is the server's, which should be left in peace for a while.
    this.onFault(this.failure ?? "the server ended the stream before its responses", true);
  }

  onFault(text: string, isConnectionLost: boolean): void {
    this.carrier.closed(this);
    const requests = [...this.#requests.values()];
    this.#requests.clear();
    for (const request of requests) this.carrier.fault(request, text, isConnectionLost);
  }

  #read(bytes: Buffer, now: number): void {
    const { errorMessage, inferResponse } = decodeMessage(inference.ModelStreamInferResponse, bytes);
    const id = inferResponse?.id ?? "";
    // Errors of some servers have no id: they answer the oldest request.
    const [oldest] = this.#requests.values();
    const request = id === "" ? oldest : this.#requests.get(Number(id));
    if (request === undefined) return;
    this.#requests.delete(request.number);
    if (errorMessage) this.carrier.fault(request, errorMessage, false);
    else if (inferResponse == null || !this.carrier.responded(request, inferResponse, now))
      this.#requests.set(request.number, request);
  }
}
