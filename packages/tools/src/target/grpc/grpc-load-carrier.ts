import type { EndListener, LoadCarrier, ResponseHandling } from "../carrier.js";
import { epochNow } from "../epoch-time.js";
import { type ExpectedOutputs, outputFault } from "../expected-outputs.js";
import type { ClientCall } from "../http2/client-call.js";
import type { Http2Session, Http2Stream } from "../http2/http2-session.js";
import type { LoadRequest } from "../load-request.js";
import { outputsJson } from "../outputs-json.js";
import type { StampedRequests } from "../wire/stamped-requests.js";
import { grpcFailure } from "./grpc-status.js";
import { decodeInferMessage, outputTensors } from "./infer-response.js";
import { MessageAssembler } from "./message-assembler.js";
import type { SessionPool } from "./session-pool.js";

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
