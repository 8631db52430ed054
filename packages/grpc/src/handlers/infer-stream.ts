import {
  type InferenceRequest,
  isDecoupled,
  isTimeout,
  type ReadyModel,
  RequestRegions,
  type RequestShare,
  type ResponseHandler,
  TritonError,
} from "@tritonjs/core";
import type { inference } from "@tritonjs/grpc-messages";
import { type DecodedRequest, decodeInferRequest } from "../decode/infer-request.js";
import { encodeRefusal, encodeStreamReply } from "../encode/stream-reply.js";
import type { DuplexStream } from "../transport/call.js";
import { GrpcSampler } from "./grpc-trace.js";
import type { InferContext } from "./infer-context.js";
import { OrderedResponses, type Place } from "./ordered-responses.js";
import { outputFilter } from "./output-filter.js";

type RequestMessage = inference.ModelInferRequest;
type StreamMessage = inference.ModelStreamInferResponse.$Properties;

/** Header that asks for the first error of a model to end the stream; of several values the first counts. */
const ERROR_MODE_HEADER = "triton_grpc_error";

/**
 * One stream of requests. A request that fails is answered by a message of its own and the stream goes on.
 * Responses of models with one response to a request come in the order of the requests, those of decoupled
 * models as they are made.
 */
export class InferStream {
  readonly #stream: DuplexStream<RequestMessage, StreamMessage>;
  readonly #context: InferContext;
  readonly #endOnError: boolean;
  readonly #ordered = new OrderedResponses<StreamMessage>(
    (message) => this.#write(message),
    (error) => this.#end(error),
  );
  readonly #inFlight = new Set<InferenceRequest>();
  readonly #sampler: GrpcSampler;
  #halfClosed = false;
  #behind = false;
  #ended = false;

  constructor(stream: DuplexStream<RequestMessage, StreamMessage>, context: InferContext) {
    this.#stream = stream;
    this.#context = context;
    this.#sampler = new GrpcSampler(context.service.tracing);
    const [errorMode] = stream.headers.get(ERROR_MODE_HEADER)?.split(",") ?? [];
    this.#endOnError = errorMode === "true";
  }

  /** Starts to read. */
  open(): void {
    const forget = this.#context.shutdown.onExpire((reason) => this.#end(reason));
    this.#stream.onClose(() => {
      forget();
      this.#giveUp();
    });
    this.#stream.onDrain(() => this.#catchUp());
    this.#stream.onHalfClose(() => {
      this.#halfClosed = true;
      this.#endIfDone();
    });
    this.#stream.onMessage((message, share) => this.#receive(message, share));
  }

  #receive(message: RequestMessage, share: RequestShare): void {
    if (this.#ended) {
      share.release();
      return;
    }
    // A request to an unknown model waits for its turn, like one to a model with one response to a request.
    let inOrder = true;
    let place: Place<StreamMessage> | undefined;
    try {
      this.#context.shutdown.refuseIfBegun();
      const model = this.#context.service.model(message.modelName, message.modelVersion);
      inOrder = !isDecoupled(model.config);
      if (inOrder) place = this.#ordered.open();
      this.#infer(message, model, place, share);
    } catch (error) {
      share.release();
      if (inOrder) place ??= this.#ordered.open();
      this.#answer(place, encodeRefusal(message, TritonError.from(error)));
      this.#finish(place);
    }
  }

  #infer(
    message: RequestMessage,
    model: ReadyModel,
    place: Place<StreamMessage> | undefined,
    share: RequestShare,
  ): void {
    const { service, forwardHeaders } = this.#context;
    const regions = new RequestRegions(service.sharedMemory);
    const trace = this.#sampler.sample(model.name, this.#stream.headers);
    let decoded: DecodedRequest | undefined;
    const onResponse: ResponseHandler = (outcome, final) => {
      if (final) this.#inFlight.delete(decoded!.request);
      trace?.responded();
      trace?.sending();
      try {
        this.#reply(message, model, decoded!, outcome, final, place);
      } finally {
        if (final) {
          regions.release();
          share.release();
          trace?.sent();
        }
      }
    };
    try {
      decoded = decodeInferRequest(
        message,
        forwardHeaders(this.#stream.headers),
        regions,
        onResponse,
        trace?.request,
      );
      this.#inFlight.add(decoded.request);
      if (this.#behind) decoded.request.pause();
      service.infer(decoded.request);
    } catch (error) {
      regions.release();
      trace?.sent();
      if (decoded !== undefined) this.#inFlight.delete(decoded.request);
      throw error;
    }
  }

  #reply(
    message: RequestMessage,
    model: ReadyModel,
    decoded: DecodedRequest,
    outcome: Parameters<ResponseHandler>[0],
    final: boolean,
    place: Place<StreamMessage> | undefined,
  ): void {
    if (this.#ended) return;
    if (this.#endOnError && TritonError.is(outcome)) {
      // A request whose time is over does not take the answers of those in front of it along.
      if (place !== undefined && isTimeout(outcome)) place.close(outcome);
      else this.#end(outcome);
      return;
    }
    const reply = encodeStreamReply(message, outcome, final, {
      filter: outputFilter(model, decoded.outputs),
      emptyFinal: place === undefined && decoded.enableEmptyFinalResponse,
    });
    if (reply !== undefined) this.#answer(place, reply);
    if (final) this.#finish(place);
  }

  #answer(place: Place<StreamMessage> | undefined, message: StreamMessage): void {
    if (place === undefined) this.#write(message);
    else place.add(message);
  }

  #finish(place: Place<StreamMessage> | undefined): void {
    place?.close();
    this.#endIfDone();
  }

  /** While the client is behind with reading, no more requests are taken and models make no more responses. */
  #write(message: StreamMessage): void {
    if (this.#ended || this.#stream.write(message) || this.#behind) return;
    this.#behind = true;
    this.#stream.pause();
    for (const request of this.#inFlight) request.pause();
  }

  #catchUp(): void {
    this.#behind = false;
    this.#stream.resume();
    for (const request of this.#inFlight) request.resume();
  }

  #endIfDone(): void {
    if (this.#halfClosed && this.#inFlight.size === 0) this.#end();
  }

  #end(error?: TritonError): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#stream.end(error);
    this.#giveUp();
  }

  /** Nobody waits any more. */
  #giveUp(): void {
    this.#ended = true;
    for (const request of [...this.#inFlight]) request.cancel();
    this.#inFlight.clear();
  }
}
