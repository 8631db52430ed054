import { LinkedList } from "@tritonjs/core/internal";
import { isDecoupled, isTimeout, TritonError } from "@tritonjs/protocol";
import { type inference, inferencePath } from "@tritonjs/protocol/grpc";
import {
  Exchange,
  type ExchangeOptions,
  type InferenceResponse,
  type InferenceService,
  type ReadyModel,
  type RequestShare,
  type ResponseSink,
} from "@tritonjs/server";
import { type HeaderPattern, readCallerHeaders } from "@tritonjs/server/internal";
import type { Shutdown } from "../shutdown.js";
import { type CallHeaders, type DuplexStream, duplex, type Method } from "../transport/method.js";
import { GrpcSampler, type GrpcTrace } from "./grpc-trace.js";
import { type DecodedMessage, decodeInferRequest, freeMessageWhenUsed } from "./infer-request.js";
import { inferRequestDecoder } from "./infer-request-limits.js";
import {
  encodeEmptyFinal,
  encodeRefusal,
  encodeStreamReply,
  encodeStreamResponseParts,
} from "./infer-response.js";
import { forwardedParameters, mayWait, reportFormat, reportLoad } from "./model-infer.js";

type RequestMessage = inference.ModelInferRequest;
type StreamMessage = inference.ModelStreamInferResponse.$Properties;

/** Header that makes the first error of a model end the stream; of several values the first counts. */
const ERROR_MODE_HEADER = "triton_grpc_error";

/** A header of each request of a stream. gRPC's own deadline is that of the whole stream. */
const headerOfEach = (headers: CallHeaders, name: string): string | undefined =>
  name === "grpc-timeout" ? undefined : headers.get(name);

/** @param forwarded pattern of the headers that go to the model as parameters */
export function streamInferMethod(
  service: InferenceService,
  shutdown: Shutdown,
  forwarded: HeaderPattern | undefined,
): Method {
  return duplex(
    {
      path: inferencePath("ModelStreamInfer"),
      protocol: "inference",
      request: inferRequestDecoder(service),
      response: { encodeParts: encodeStreamResponseParts },
    },
    (stream) => new InferStream(stream, service, shutdown, forwarded).open(),
  );
}

/**
 * One stream of requests. A failed request is answered with a message of its own, and the stream continues. Models with
 * one response per request answer in the order of the requests. Decoupled models send responses as they make them.
 *
 * ```
 * open:      [ A ]--[ B ]--[ C ]     A, the first, writes at once   B: b1, over   C: c1
 * A is over: b1 is written, and c1, because C is the first now
 * ```
 */
class InferStream {
  readonly #endOnError: boolean;
  /** Requests that are not over, or whose answers wait for those of an earlier one. */
  readonly #open = new LinkedList<StreamedRequest>();
  /** The first of the requests that answer in order. */
  #first: StreamedRequest | undefined;
  readonly #sampler: GrpcSampler;
  /** Format of the load report that the client asks for, and the model that it is about: that of the last request. */
  readonly #reportFormat: string | undefined;
  #lastModel: ReadyModel | undefined;
  #halfClosed = false;
  #behind = false;
  /** The request that waits at a full queue, or whose refusal waits for its turn. */
  #held: StreamedRequest | undefined;
  #ended = false;
  readonly #options: ExchangeOptions;
  /** Options of the exchange of a request that is too large to be kept until its refusal. */
  readonly #largeOptions: ExchangeOptions;

  constructor(
    private readonly stream: DuplexStream<RequestMessage, StreamMessage>,
    private readonly service: InferenceService,
    private readonly shutdown: Shutdown,
    private readonly forwarded: HeaderPattern | undefined,
  ) {
    this.#sampler = new GrpcSampler(service.tracing, "ModelStreamInfer");
    this.#reportFormat = reportFormat(stream);
    this.#options = { header: (name) => stream.headers.get(name) };
    this.#largeOptions = { ...this.#options, mayWait: false };
    const [errorMode] = stream.headers.get(ERROR_MODE_HEADER)?.split(",") ?? [];
    this.#endOnError = errorMode === "true";
  }

  open(): void {
    const forget = this.shutdown.onExpire((reason) => this.#end(reason));
    this.stream.onClose(() => {
      forget();
      this.#giveUp();
    });
    this.stream.onDrain(() => this.#catchUp());
    this.stream.onHalfClose(() => {
      this.#halfClosed = true;
      this.#endIfDone();
    });
    this.stream.onMessage((message, share) => this.#receive(message, share));
  }

  #receive(message: RequestMessage, share: RequestShare): void {
    if (this.#ended) {
      share.release();
      return;
    }
    const request = new StreamedRequest(this, message, share);
    let exchange: Exchange;
    let turn: Promise<void> | undefined;
    try {
      this.shutdown.refuseIfBegun();
      const { modelName, modelVersion } = message;
      const model = this.service.model(modelName, modelVersion);
      if (this.#reportFormat !== undefined) this.#lastModel = model;
      exchange = new Exchange(
        this.service,
        undefined,
        model,
        modelVersion,
        mayWait(message) ? this.#options : this.#largeOptions,
      );
      request.exchange = exchange;
      turn = exchange.turn(message.id);
    } catch (error) {
      this.#add(request);
      request.refuse(error);
      return;
    }
    if (turn === undefined) this.#send(request, exchange);
    else void this.#sendInTurn(turn, request, exchange);
  }

  /**
   * Holds a request at a full queue. The stream reads no further requests meanwhile: the client gets back-pressure
   * instead of one refusal after another.
   */
  async #sendInTurn(turn: Promise<void>, request: StreamedRequest, exchange: Exchange): Promise<void> {
    this.#hold(request);
    let refusal: unknown;
    try {
      await turn;
      exchange.current();
    } catch (error) {
      refusal = error;
    }
    this.#held = undefined;
    if (this.#ended) request.close();
    else if (refusal === undefined) this.#send(request, exchange);
    else {
      this.#add(request);
      request.refuse(refusal);
    }
    this.#readOn();
  }

  #send(request: StreamedRequest, exchange: Exchange): void {
    this.#add(request);
    const { message } = request;
    let decoded: DecodedMessage;
    try {
      request.trace = this.#sampler.sample(exchange.model.name, this.stream);
      decoded = decodeInferRequest(message, forwardedParameters(this.stream, this.forwarded), exchange);
      decoded.trace = request.trace?.request;
      readCallerHeaders(decoded, exchange.model.reads, this.stream.headers, headerOfEach);
    } catch (error) {
      request.refuse(error);
      return;
    }
    request.decoded = decoded;
    if (this.stream.ownsMessages) decoded.onInputsUsed = freeMessageWhenUsed(message);
    if (exchange.send(decoded, request) !== undefined) this.#hold(request);
    else if (this.#ended) exchange.cancel();
    else if (this.#behind) exchange.pause();
  }

  #add(request: StreamedRequest): void {
    const model = request.exchange?.model;
    request.inOrder = model === undefined || !isDecoupled(model.config);
    this.#open.push(request);
    if (request.inOrder) this.#first ??= request;
  }

  #hold(request: StreamedRequest): void {
    this.#held = request;
    this.stream.pause();
  }

  /** Reads on, unless something else holds the stream up. The next request may be delivered before it returns. */
  #readOn(): void {
    if (!this.#ended && this.#held === undefined && !this.#behind) this.stream.resume();
  }

  refused(request: StreamedRequest, error: unknown): void {
    const wasHeld = this.#held === request;
    if (wasHeld) this.#held = undefined;
    request.close();
    if (!this.#ended) {
      this.#answer(request, encodeRefusal(request.message, TritonError.from(error)));
      this.#finish(request);
    }
    if (wasHeld) this.#readOn();
  }

  replied(
    request: StreamedRequest,
    outcome: InferenceResponse | TritonError | undefined,
    final: boolean,
  ): void {
    try {
      if (!this.#ended) this.#reply(request, outcome, final);
    } finally {
      if (final) request.close();
      else if (this.#behind) request.exchange!.pause();
    }
  }

  #reply(
    request: StreamedRequest,
    outcome: InferenceResponse | TritonError | undefined,
    final: boolean,
  ): void {
    if (this.#endOnError && TritonError.is(outcome)) {
      // A request that timed out must not end the stream before earlier requests are answered.
      if (request.inOrder && isTimeout(outcome)) this.#finish(request, outcome);
      else this.#end(outcome);
      return;
    }
    const { message, decoded, exchange } = request;
    if (outcome !== undefined) {
      this.#answer(request, encodeStreamReply(message, exchange!.model, decoded!, outcome, final));
    } else if (!request.inOrder && decoded!.enableEmptyFinalResponse) {
      this.#write(encodeEmptyFinal(message));
    }
    if (final) this.#finish(request);
  }

  #answer(request: StreamedRequest, message: StreamMessage): void {
    if (!request.inOrder || request === this.#first) this.#write(message);
    else if (request.answers === undefined) request.answers = [message];
    else request.answers.push(message);
  }

  /** @param error ends the stream at the turn of the request */
  #finish(request: StreamedRequest, error?: TritonError): void {
    request.isOver = true;
    request.error = error;
    if (!request.inOrder) this.#open.remove(request);
    else if (request === this.#first) this.#finishFirst(request);
    this.#endIfDone();
  }

  /** Writes what the next requests in the order have answered, up to one that is not over. */
  #finishFirst(over: StreamedRequest): void {
    for (let first: StreamedRequest | undefined = over; first?.isOver; first = this.#first) {
      let next: StreamedRequest | undefined = first.next;
      while (next !== undefined && !next.inOrder) next = next.next;
      this.#first = next;
      this.#open.remove(first);
      if (first.error !== undefined) this.#end(first.error);
      next?.answers?.forEach((message) => void this.#write(message));
    }
  }

  /** While the client reads too slowly, the stream reads no more requests and pauses the models' responses. */
  #write(message: StreamMessage): void {
    if (this.#ended || this.stream.write(message) || this.#behind) return;
    this.#behind = true;
    this.stream.pause();
    for (const { exchange } of this.#open.all()) exchange?.pause();
  }

  #catchUp(): void {
    this.#behind = false;
    this.#readOn();
    for (const { exchange } of this.#open.all()) exchange?.resume();
  }

  #endIfDone(): void {
    if (!this.#halfClosed || this.#held !== undefined || this.#open.size > 0) return;
    const model = this.#lastModel;
    if (model === undefined) this.#end();
    else void reportLoad(this.service, this.stream, model, this.#reportFormat!).then(() => this.#end());
  }

  #end(error?: TritonError): void {
    if (this.#ended) return;
    this.#ended = true;
    this.stream.end(error);
    this.#giveUp();
  }

  #giveUp(): void {
    this.#ended = true;
    this.#held?.exchange?.cancel();
    for (const { exchange } of this.#open.all()) exchange?.cancel();
  }
}

/** A request of a stream, with its place in the order of answers. */
class StreamedRequest implements ResponseSink {
  next: StreamedRequest | undefined = undefined;
  previous: StreamedRequest | undefined = undefined;
  /** Undefined for a request without a model. */
  exchange: Exchange | undefined = undefined;
  decoded: DecodedMessage | undefined = undefined;
  trace: GrpcTrace | undefined = undefined;
  /** False for a decoupled model. */
  inOrder = true;
  isOver = false;
  /** Answers that wait for those of earlier requests. */
  answers: StreamMessage[] | undefined = undefined;
  error: TritonError | undefined = undefined;

  constructor(
    private readonly stream: InferStream,
    readonly message: RequestMessage,
    private readonly share: RequestShare,
  ) {}

  respond(outcome: InferenceResponse | TritonError | undefined, final: boolean): void {
    this.trace?.responded();
    this.trace?.sending();
    this.stream.replied(this, outcome, final);
  }

  refuse(error: unknown): void {
    this.stream.refused(this, error);
  }

  /** Returns the memory of the request. */
  close(): void {
    this.exchange?.release();
    this.share.release();
    this.trace?.sent();
  }
}
