import {
  type Client,
  ClientGone,
  type ClientSender,
  type InferenceRequest,
  type InferenceResponse,
  type InferInit,
  type RequestHandle,
  requestOf,
  sendFor,
} from "@tritonjs/core/internal/server";
import { errorFor, TritonError } from "@tritonjs/protocol";
import type { RegionRange, RequestedRange } from "../shared-memory/shared-memory.js";
import type { FoundModel, InferenceService } from "./inference-service.js";
import type { PlaceInLine, RefusalLine } from "./refusal-line.js";

/** Receives what becomes of one request: either its refusal alone, or outcomes of which the last is final. */
export interface ResponseSink {
  /** @param outcome undefined for a decoupled model that ends without a further response */
  respond(outcome: InferenceResponse | TritonError | undefined, final: boolean): void;
  /** Receives the error of a request that was not accepted, when it is the turn of the refusal. */
  refuse(error: unknown): void;
}

interface ResponseTrace {
  responded(): void;
}

/** The service of an exchange over a transport. */
type ExchangeService = Pick<InferenceService, "model" | "assertOpen" | "refusals" | "sharedMemory">;

/** Options of an {@link Exchange}. */
export interface ExchangeOptions {
  /** Text of the refusal of models that may send several responses; undefined where they are allowed. */
  readonly unaryOnly?: string | undefined;
  /** False for a request that is too large to be kept until the turn of its refusal. @default true */
  readonly mayWait?: boolean;
  /** Reads a header, for a transport whose requests have no client. */
  readonly header?: Client["header"];
}

const NO_OPTIONS: ExchangeOptions = {};

/**
 * The life of one inference request over any transport. Calls in process only use {@link sendFor}: they do not wait for
 * room, and an object with the state of a transport would add 6% to their time.
 *
 * ```
 * new Exchange   with the version that a look-up has found
 * turn()         waits while the queue is full; rejects at the refusal's turn
 *                (the transport reads the body)
 * current()      the version in service after the wait, with which the transport decodes
 * send()         queues the request. Its outcomes, or its refusal, go to the sink; it is cancelled with its client
 * ```
 *
 * Nothing waits between `current` and `send`, so that a reload cannot mix two versions.
 */
export class Exchange implements ClientSender<FoundModel> {
  /** The version for which the request was or will be decoded. */
  model: FoundModel;
  /** Set for a traced request before it is sent. */
  trace: ResponseTrace | undefined = undefined;
  /** True once the model has accepted the request and answered: errors are its own from then on. */
  answered = false;
  forgetClient: (() => void) | undefined = undefined;
  readonly #service: ExchangeService;
  readonly #client: Client | undefined;
  readonly #version: string;
  readonly #options: ExchangeOptions;
  #place: PlaceInLine | undefined = undefined;
  #sink: ResponseSink | undefined = undefined;
  #handle: RequestHandle | undefined = undefined;
  #regions: RegionRange[] | undefined = undefined;

  /**
   * @param client undefined for a transport that calls `cancel` itself
   * @param model the version that the look-up of the request has found
   * @param version the version as the client wrote it, for a repeated look-up; empty for the latest
   * @throws TritonError UNSUPPORTED for a decoupled model where none is allowed
   */
  constructor(
    service: ExchangeService,
    client: Client | undefined,
    model: FoundModel,
    version = "",
    options = NO_OPTIONS,
  ) {
    this.#service = service;
    this.#client = client;
    this.#version = version;
    this.#options = options;
    this.model = model;
    this.#refuseDecoupled();
  }

  /**
   * The turn of a refusal while the model's queue is full; undefined while there is room. Resolves if there is room by
   * then. Rejects with UNAVAILABLE if there is none, and with ClientGone when the client leaves.
   *
   * @param id id that the client gave the request; empty while it is unknown
   */
  turn(id: string): Promise<void> | undefined {
    const line = this.#line;
    const { requests } = this.model;
    return line !== undefined && requests?.isFull ? this.#turnAt(line.placeFor(requests), id) : undefined;
  }

  async #turnAt(place: PlaceInLine, id: string): Promise<void> {
    this.#place = place;
    const forgetClient = this.#client?.onGone(() => place.leave());
    try {
      await place.turn;
      this.#service.assertOpen();
      const refusal = this.current().requests?.refusal(id);
      if (refusal !== undefined) throw refusal;
    } catch (refusal) {
      throw this.#client?.gone ? new ClientGone(refusal) : refusal;
    } finally {
      this.#place = undefined;
      forgetClient?.();
    }
  }

  /** The line of refusals; undefined for a request that does not wait. */
  get #line(): Pick<RefusalLine, "placeFor" | "turn"> | undefined {
    return this.#options.mayWait === false ? undefined : this.#service.refusals;
  }

  /**
   * The version in service now. Call it after each wait.
   *
   * @throws TritonError NOT_FOUND or UNAVAILABLE if none is, UNSUPPORTED as the constructor
   */
  current(): FoundModel {
    if (this.model.inService) return this.model;
    this.model = this.#service.model(this.model.name, this.#version);
    this.#refuseDecoupled();
    return this.model;
  }

  #refuseDecoupled(): void {
    const { unaryOnly } = this.#options;
    if (unaryOnly === undefined || !this.model.config.modelTransactionPolicy?.decoupled) return;
    throw errorFor("DECOUPLED_MODEL", unaryOnly);
  }

  /**
   * Queues the request, and cancels it when the client leaves.
   *
   * @returns the turn of the refusal if the request is refused and that has to wait
   */
  send(request: InferInit, sink: ResponseSink): Promise<void> | undefined {
    this.#sink = sink;
    try {
      this.#service.assertOpen();
      const content = requestOf(request, this.model.name);
      const anyVersion = this.#version === "";
      if (anyVersion) this.#readKey(content);
      const handle = sendFor(this.#client, this.model, content, this, anyVersion);
      if (!handle.settled) this.#handle = handle;
    } catch (error) {
      return this.#refuse(error);
    }
    return undefined;
  }

  /** Reads the key by which a router chooses the version. */
  #readKey(request: InferenceRequest): void {
    const { keyHeader } = this.model;
    if (keyHeader === undefined) return;
    const key = this.#options.header?.(keyHeader) ?? this.#client?.header?.(keyHeader);
    if (key !== undefined) request.routingKey = key;
  }

  routed(model: FoundModel): void {
    this.model = model;
  }

  /**
   * Sends a request that has exactly one response. Rejects with its refusal or its error, with INTERNAL for another
   * number of responses, and with ClientGone when the client has left before.
   */
  single(request: InferInit): Promise<InferenceResponse> {
    return new Promise((resolve, reject) => void this.send(request, new SingleResponse(resolve, reject)));
  }

  /** Holds the shared memory of a tensor until {@link release}. Throws for an unknown region and a range outside it. */
  hold(range: RequestedRange): RegionRange {
    const held = this.#service.sharedMemory.hold(range);
    this.#regions ??= [];
    this.#regions.push(held);
    return held;
  }

  /** Releases the shared memory of the request when it is done. Calling it twice is harmless. */
  release(): void {
    const regions = this.#regions;
    if (regions === undefined) return;
    this.#regions = undefined;
    for (const region of regions) this.#service.sharedMemory.release(region);
  }

  /** Asks the model to pause between its responses. */
  pause(): void {
    this.#handle?.pause();
  }

  resume(): void {
    this.#handle?.resume();
  }

  /** Tells a decoupled model that no more responses are wanted. Returns false if the model cannot be told. */
  askToStop(): boolean {
    return this.#handle?.askToStop() ?? false;
  }

  /** Cancels the request, or ends its wait for room. Returns false if it was over or not sent. */
  cancel(reason?: TritonError): boolean {
    this.#place?.leave();
    return this.#handle?.cancel(reason) ?? false;
  }

  /** Receives an outcome of the request from its model. */
  receive(outcome: InferenceResponse | TritonError | undefined, final: boolean, sent: RequestHandle): void {
    this.#handle = final ? undefined : sent;
    if (final) this.forgetClient?.();
    if (sent.refused) {
      this.#sink!.refuse(outcome);
      return;
    }
    this.answered = true;
    if (outcome !== undefined) this.trace?.responded();
    this.#sink!.respond(outcome, final);
  }

  /** An overloaded model's refusal waits for its turn: clients that retry at once must not slow running requests down. */
  #refuse(error: unknown): Promise<void> | undefined {
    const isOverload = TritonError.is(error) && error.code === "UNAVAILABLE";
    const turn = isOverload ? this.#line?.turn() : undefined;
    if (turn !== undefined) return turn.then(() => this.#sink!.refuse(error));
    this.#sink!.refuse(error);
    return undefined;
  }
}

class SingleResponse implements ResponseSink {
  readonly #resolve: (response: InferenceResponse) => void;
  readonly refuse: (error: unknown) => void;
  #count = 0;
  #last: InferenceResponse | undefined = undefined;
  #error: TritonError | undefined = undefined;

  constructor(resolve: (response: InferenceResponse) => void, reject: (error: unknown) => void) {
    this.#resolve = resolve;
    this.refuse = reject;
  }

  respond(outcome: InferenceResponse | TritonError | undefined, final: boolean): void {
    if (TritonError.is(outcome)) this.#error ??= outcome;
    else if (outcome !== undefined) {
      this.#count++;
      this.#last = outcome;
    }
    if (!final) return;
    if (this.#error !== undefined) this.refuse(this.#error);
    else if (this.#count === 1) this.#resolve(this.#last!);
    else {
      const text = `expected a single response, got ${this.#count}`;
      this.refuse(errorFor("INVALID_OUTPUT", text));
    }
  }
}
