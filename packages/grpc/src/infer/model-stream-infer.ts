import {
  Exchange,
  type InferenceResponse,
  type PinnedModel,
  type ReadyModel,
  type RequestHandle,
  type RequestShare,
} from "@tritonjs/core/frontend";
import { LinkedList } from "@tritonjs/core/internal";
import { isDecoupled, isTimeout, TritonError } from "@tritonjs/protocol";
import { type inference, inferencePath } from "@tritonjs/protocol/grpc";
import { type DuplexStream, duplex, type Method } from "../transport/method.js";
import { GrpcSampler } from "./grpc-trace.js";
import { type DecodedMessage, decodeInferRequest, freeMessageWhenUsed } from "./infer-request.js";
import { inferRequestDecoder } from "./infer-request-limits.js";
import {
  encodeEmptyFinal,
  encodeRefusal,
  encodeStreamReply,
  encodeStreamResponseParts,
} from "./infer-response.js";
import {
  forwardedParameters,
  type InferHandlerContext,
  mayWait,
  reportFormat,
  reportLoad,
} from "./model-infer.js";

type RequestMessage = inference.ModelInferRequest;
type StreamMessage = inference.ModelStreamInferResponse.$Properties;

/** Header that makes the first error of a model end the stream; of several values the first counts. */
const ERROR_MODE_HEADER = "triton_grpc_error";

export function streamInferMethods(context: InferHandlerContext): Method[] {
  return [
    duplex(
      {
        path: inferencePath("ModelStreamInfer"),
        protocol: "inference",
        request: inferRequestDecoder(context.service),
        response: { encodeParts: encodeStreamResponseParts },
      },
      (stream) => new InferStream(stream, context).open(),
    ),
  ];
}

/**
 * One stream of requests. A failed request is answered with a message of its own, and the stream continues. Models with
 * one response per request answer in the order of the requests. Decoupled models send responses as they make them.
 */
class InferStream {
  readonly #stream: DuplexStream<RequestMessage, StreamMessage>;
  readonly #context: InferHandlerContext;
  readonly #endOnError: boolean;
  readonly #ordered = new OrderedStreamResponses<StreamMessage>(
    (message) => this.#write(message),
    (error) => this.#end(error),
  );
  readonly #open = new LinkedList<OpenRequest>();
  readonly #sampler: GrpcSampler;
  /** Format of the load report that the client asks for, and the model that it is about: that of the last request. */
  readonly #reportFormat: string | undefined;
  #lastModel: ReadyModel | undefined;
  #halfClosed = false;
  #behind = false;
  /** True while a request waits at a full queue, or its refusal for its turn. */
  #held = false;
  #ended = false;

  constructor(stream: DuplexStream<RequestMessage, StreamMessage>, context: InferHandlerContext) {
    this.#stream = stream;
    this.#context = context;
    this.#sampler = new GrpcSampler(context.service.tracing, "ModelStreamInfer");
    this.#reportFormat = reportFormat(stream);
    const [errorMode] = stream.headers.get(ERROR_MODE_HEADER)?.split(",") ?? [];
    this.#endOnError = errorMode === "true";
  }

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
    const { service, shutdown } = this.#context;
    let model: PinnedModel | undefined;
    try {
      shutdown.refuseIfBegun();
      model = service.model(message.modelName, message.modelVersion);
      if (this.#reportFormat !== undefined) this.#lastModel = model;
      const exchange = new Exchange(service, undefined, model, { mayWait: mayWait(message) });
      const turn = exchange.turn(message.id);
      if (turn === undefined) this.#send(message, exchange, share);
      else void this.#sendInTurn(turn, message, exchange, share);
    } catch (error) {
      share.release();
      this.#refuse(message, this.#placeFor(model), error);
    }
  }

  /**
   * Holds a request at a full queue. The stream reads no further requests meanwhile: the client gets back-pressure
   * instead of one refusal after another.
   */
  async #sendInTurn(
    turn: Promise<void>,
    message: RequestMessage,
    exchange: Exchange,
    share: RequestShare,
  ): Promise<void> {
    const entry = this.#add(exchange);
    this.#hold();
    try {
      await turn;
      exchange.current();
      this.#open.remove(entry);
      this.#held = false;
      if (this.#ended) share.release();
      else this.#send(message, exchange, share);
    } catch (error) {
      this.#open.remove(entry);
      this.#held = false;
      share.release();
      this.#refuse(message, this.#placeFor(exchange.model), error);
    }
    this.#readOn();
  }

  #send(message: RequestMessage, exchange: Exchange, share: RequestShare): void {
    const { model } = exchange;
    const place = this.#placeFor(model);
    const trace = this.#sampler.sample(model.name, this.#stream);
    const entry = this.#add(exchange);
    let waitsForRefusal = false;
    const close = (): void => {
      exchange.release();
      share.release();
      trace?.sent();
    };
    const refuse = (error: unknown): void => {
      this.#open.remove(entry);
      if (waitsForRefusal) this.#held = false;
      close();
      this.#refuse(message, place, error);
      if (waitsForRefusal) this.#readOn();
    };
    let decoded: DecodedMessage;
    try {
      decoded = decodeInferRequest(message, forwardedParameters(this.#context, this.#stream), exchange);
    } catch (error) {
      refuse(error);
      return;
    }
    decoded.trace = trace?.request;
    if (this.#stream.ownsMessages) decoded.onInputsUsed = freeMessageWhenUsed(message);
    const refusal = exchange.send(decoded, {
      respond: (outcome, final) => {
        if (final) this.#open.remove(entry);
        trace?.responded();
        trace?.sending();
        try {
          this.#reply(message, model, decoded, outcome, final, place);
        } finally {
          if (final) close();
          else if (this.#behind) exchange.pause();
        }
      },
      refuse,
    });
    if (refusal !== undefined) {
      waitsForRefusal = true;
      this.#hold();
    } else if (this.#ended) exchange.cancel();
    else if (this.#behind) exchange.pause();
  }

  #add(sent: SentRequest): OpenRequest {
    const entry: OpenRequest = { sent, previous: undefined, next: undefined };
    this.#open.push(entry);
    return entry;
  }

  /** The place of an answer of this model, or of an error without a model; undefined for a decoupled model. */
  #placeFor(model: ReadyModel | undefined): Place<StreamMessage> | undefined {
    return model !== undefined && isDecoupled(model.config) ? undefined : this.#ordered.open();
  }

  #hold(): void {
    this.#held = true;
    this.#stream.pause();
  }

  /** Reads on, unless something else holds the stream up. The next request may be delivered before it returns. */
  #readOn(): void {
    if (!this.#ended && !this.#held && !this.#behind) this.#stream.resume();
  }

  #refuse(message: RequestMessage, place: Place<StreamMessage> | undefined, error: unknown): void {
    if (this.#ended) return;
    this.#answer(place, encodeRefusal(message, TritonError.from(error)));
    this.#finish(place);
  }

  #reply(
    message: RequestMessage,
    model: ReadyModel,
    decoded: DecodedMessage,
    outcome: InferenceResponse | TritonError | undefined,
    final: boolean,
    place: Place<StreamMessage> | undefined,
  ): void {
    if (this.#ended) return;
    if (this.#endOnError && TritonError.is(outcome)) {
      // A request that timed out must not end the stream before earlier requests are answered.
      if (place !== undefined && isTimeout(outcome)) place.close(outcome);
      else this.#end(outcome);
      return;
    }
    if (outcome !== undefined) {
      this.#answer(place, encodeStreamReply(message, model, decoded, outcome, final));
    } else if (place === undefined && decoded.enableEmptyFinalResponse) {
      this.#write(encodeEmptyFinal(message));
    }
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

  /** While the client reads too slowly, the stream reads no more requests and pauses the models' responses. */
  #write(message: StreamMessage): void {
    if (this.#ended || this.#stream.write(message) || this.#behind) return;
    this.#behind = true;
    this.#stream.pause();
    for (const { sent } of this.#open.all()) sent.pause();
  }

  #catchUp(): void {
    this.#behind = false;
    this.#readOn();
    for (const { sent } of this.#open.all()) sent.resume();
  }

  #endIfDone(): void {
    if (!this.#halfClosed || this.#held || this.#open.size > 0) return;
    const model = this.#lastModel;
    if (model === undefined) this.#end();
    else
      void reportLoad(this.#context.service, this.#stream, model, this.#reportFormat!).then(() =>
        this.#end(),
      );
  }

  #end(error?: TritonError): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#stream.end(error);
    this.#giveUp();
  }

  #giveUp(): void {
    this.#ended = true;
    for (const { sent } of this.#open.all()) sent.cancel();
  }
}

/** A request that a stream can pause and cancel. */
type SentRequest = Pick<RequestHandle, "cancel" | "pause" | "resume">;

interface OpenRequest {
  readonly sent: SentRequest;
  previous: OpenRequest | undefined;
  next: OpenRequest | undefined;
}

/**
 * Puts responses in the order of their requests:
 *
 *   opened:   [ A ]--[ B ]--[ C ]        A: nothing yet   B: b1, b2, closed   C: c1
 *   A closes: a1, b1, b2 are written, C is next
 */
export class OrderedStreamResponses<M> {
  readonly #write: (message: M) => void;
  readonly #fail: (error: TritonError) => void;
  /** A list through the places: a `Set` that lives as long as the stream would keep answered requests alive. */
  #first: Place<M> | undefined;
  #last: Place<M> | undefined;

  /** @param fail Receives the error with which a place was closed, at the turn of that place. */
  constructor(write: (message: M) => void, fail: (error: TritonError) => void) {
    this.#write = write;
    this.#fail = fail;
  }

  /** Takes the next place in the order. */
  open(): Place<M> {
    const place = new Place<M>(this);
    if (this.#last === undefined) this.#first = place;
    else this.#last.next = place;
    this.#last = place;
    return place;
  }

  /** Writes the responses of the places at the front of the order. */
  flush(): void {
    for (let place = this.#first; place?.closed; place = this.#first) {
      this.#first = place.next;
      if (place.next === undefined) this.#last = undefined;
      place.next = undefined;
      place.messages.forEach(this.#write);
      if (place.error !== undefined) this.#fail(place.error);
    }
  }
}

/**
 * The place of one request in the order. Its messages are held back until all earlier places are closed and it is
 * closed itself.
 */
class Place<M> {
  readonly messages: M[] = [];
  closed = false;
  error: TritonError | undefined;
  next: Place<M> | undefined;
  readonly #order: OrderedStreamResponses<M>;

  constructor(order: OrderedStreamResponses<M>) {
    this.#order = order;
  }

  add(message: M): void {
    this.messages.push(message);
  }

  close(error?: TritonError): void {
    this.closed = true;
    this.error = error;
    this.#order.flush();
  }
}
