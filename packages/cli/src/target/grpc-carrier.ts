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
import type { Endpoint } from "./target-options.js";
import { decompressBytes, type StampedRequests } from "./wire-template.js";

/** Parts of a gRPC carrier. */
export interface GrpcCarrierParts {
  readonly sessions: SessionPool;
  readonly requests: StampedRequests;
  readonly expected?: ExpectedOutputs;
  readonly handling: ResponseHandling;
}

/** Sends each request as a call of `ModelInfer`. */
export class GrpcLoadCarrier implements LoadCarrier {
  readonly #parts: GrpcCarrierParts;
  readonly #onEnd: EndListener;
  readonly #waiting: LoadRequest[] = [];

  constructor(parts: GrpcCarrierParts, onEnd: EndListener) {
    this.#parts = parts;
    this.#onEnd = onEnd;
  }

  get bytesSent(): number {
    return this.#parts.sessions.bytesSent;
  }

  get bytesReceived(): number {
    return this.#parts.sessions.bytesReceived;
  }

  send(request: LoadRequest): void {
    const session = this.#parts.sessions.take();
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
    this.#parts.sessions.close();
  }

  /** For calls. */
  ended(request: LoadRequest): void {
    request.carried = undefined;
    request.end = epochNow();
    const next = this.#waiting.shift();
    if (next !== undefined) this.send(next);
    this.#onEnd(request);
  }

  #sendOver(session: Http2Session, request: LoadRequest): void {
    const { requests, expected, handling } = this.#parts;
    requests.stamp(request);
    const call = new UnaryCall(this, session, request, expected?.[request.payload], handling.keepOutputs);
    request.carried = call;
    request.sent = epochNow();
    call.stream = session.start(call, requests.prefix, requests.rest, true);
  }
}

class UnaryCall implements ClientCall {
  stream: Http2Stream | undefined;
  readonly #carrier: GrpcLoadCarrier;
  readonly #session: Http2Session;
  readonly #request: LoadRequest;
  readonly #expected: ExpectedOutputs[number];
  readonly #keepsOutputs: boolean;
  #headers: ReadonlyMap<string, string> | undefined;
  #encoding = "";
  #assembler: MessageAssembler | undefined;
  #messages: Buffer[] = [];
  #isOver = false;

  constructor(
    carrier: GrpcLoadCarrier,
    session: Http2Session,
    request: LoadRequest,
    expected: ExpectedOutputs[number],
    keepsOutputs: boolean,
  ) {
    this.#carrier = carrier;
    this.#session = session;
    this.#request = request;
    this.#expected = expected;
    this.#keepsOutputs = keepsOutputs;
    if (expected !== undefined || keepsOutputs) this.#assembler = new MessageAssembler();
  }

  onSent(): void {
    if (!this.#isOver) this.#request.sendEnd = epochNow();
  }

  onHeaders(headers: ReadonlyMap<string, string>): void {
    this.#encoding ||= headers.get("grpc-encoding") ?? "";
    this.#headers = headers;
  }

  onData(bytes: Buffer): void {
    if (this.#request.responses === 0) this.#request.responded(epochNow());
    if (this.#assembler === undefined) return;
    try {
      this.#messages.push(...this.#assembler.add(bytes, this.#encoding));
    } catch (cause) {
      this.#request.fail(`cannot read the response: ${(cause as Error).message}`);
    }
  }

  onEnd(): void {
    const failure = grpcFailure(this.#headers ?? new Map());
    if (failure !== undefined) this.#request.fail(failure);
    else if (this.#assembler !== undefined) this.#readOutputs();
    this.#end();
  }

  onFault(text: string, isConnectionLost: boolean): void {
    this.#request.fail(text);
    this.#request.isConnectionLost = isConnectionLost;
    this.#end();
  }

  cancel(): void {
    this.#isOver = true;
    if (this.stream !== undefined) this.#session.reset(this.stream);
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#carrier.ended(this.#request);
  }

  #readOutputs(): void {
    try {
      const [message] = this.#messages;
      if (message === undefined) throw new Error("expected a message, got none");
      const tensors = outputTensors(decodeInferMessage(message));
      if (this.#keepsOutputs) this.#request.responseOutputs?.push(outputsJson(tensors));
      const fault = this.#expected && outputFault(this.#expected, tensors);
      if (fault !== undefined) this.#request.fail(fault);
    } catch (cause) {
      this.#request.fail(`cannot read the response: ${(cause as Error).message}`);
    }
  }
}

/** Calls in flight on a connection before a further one is opened. */
const CALLS_PER_CONNECTION = 8;

/** The connections of a carrier. */
export class SessionPool {
  readonly #endpoint: Endpoint;
  readonly #blocks: HeaderBlocks;
  readonly #maxConnections: number;
  readonly #sessions: Http2Session[] = [];
  #closedSent = 0;
  #closedReceived = 0;

  constructor(endpoint: Endpoint, blocks: HeaderBlocks, maxConnections: number) {
    this.#endpoint = endpoint;
    this.#blocks = blocks;
    this.#maxConnections = maxConnections;
  }

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
    return this.#sessions.length < this.#maxConnections ? this.#open() : least;
  }

  close(): void {
    for (const session of this.#sessions.splice(0)) session.destroy();
  }

  #open(): Http2Session {
    const session: Http2Session = new Http2Session(this.#endpoint, this.#blocks, () => this.#remove(session));
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
export class MessageAssembler {
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

/** The outputs of a response. @throws Error for a response that cannot be read. */
export function outputTensors(response: inference.ModelInferResponse.$Properties): Map<string, Tensor> {
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

/** @throws Error for bytes that are not such a message. */
const decodeInferMessage = (bytes: Uint8Array): inference.ModelInferResponse =>
  decodeMessage(inference.ModelInferResponse, bytes);

/** @throws Error for bytes that are not such a message. */
export const decodeStreamMessage = (bytes: Uint8Array): inference.ModelStreamInferResponse =>
  decodeMessage(inference.ModelStreamInferResponse, bytes);

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

/** Text of the failure that headers or trailers tell, as Triton's Python client writes it. Undefined for success. */
export function grpcFailure(headers: ReadonlyMap<string, string>): string | undefined {
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
