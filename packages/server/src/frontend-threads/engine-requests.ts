import type { InferenceResponse, RequestArrival, RequestTrace } from "@tritonjs/core/internal/server";
import { errorFor, errorWithoutStack, type ModelConfig, TritonError } from "@tritonjs/protocol";
import { Exchange, type ResponseSink } from "../service/exchange.js";
import type { FoundModel, InferenceService } from "../service/inference-service.js";
import type { ServiceChange, WatchedModel, WatchedVersion } from "../service/service-watch.js";
import type { ServiceData } from "./control.js";
import { type IncomingFrame, KIND } from "./frames.js";
import {
  type AnsweredRequest,
  ReceivedRequest,
  RequestSlots,
  type RequestTarget,
  readFramedError,
  readRequestKey,
  writeResponse,
} from "./request-frames.js";
import type { ThreadLink } from "./thread-link.js";

/** A mark of a trace: the name of an event and its time in milliseconds. */
export type TraceMark = readonly [name: string, atMs: number];

/** How a request that may be traced came, as a thread tells it. */
export interface SentArrival {
  readonly protocol: RequestArrival["protocol"];
  readonly startMs: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly attributes: Readonly<Record<string, string | number | undefined>>;
  readonly marks: readonly TraceMark[];
}

/** How the trace of a request ended, as a thread tells it. */
export interface TraceEnd {
  readonly marks: readonly TraceMark[];
  readonly status?: number | string | undefined;
}

/** A version in service, whose configuration is known. */
export type ReadyVersion = WatchedVersion & { readonly config: ModelConfig };

/** The version that answers a request. */
type AnsweredVersion = Pick<ReadyVersion, "name" | "version"> & Pick<AnsweredRequest, "config">;

class EngineRequest implements AnsweredRequest, ResponseSink {
  readonly id: string;
  readonly modelName: string;
  readonly modelVersion: string;
  readonly config: Pick<ModelConfig, "output">;
  exchange: Exchange | undefined;
  cancelled: TritonError | undefined;
  /** The client cannot take more responses for now. */
  paused = false;
  readonly #requests: EngineRequests;

  constructor(
    requests: EngineRequests,
    readonly number: number,
    id: string,
    { name, version, config }: AnsweredVersion,
  ) {
    this.#requests = requests;
    this.id = id;
    this.modelName = name;
    this.modelVersion = String(version);
    this.config = config;
  }

  respond(outcome: InferenceResponse | TritonError | undefined, final: boolean): void {
    this.#requests.answer(this, outcome, final);
  }

  refuse(error: unknown): void {
    this.#requests.refuse(this, error);
  }
}

/** The requests of one thread, from their frames to their answers. */
export class EngineRequests {
  readonly #requests = new RequestSlots<EngineRequest>();
  /** Traces that the thread has not finished yet. */
  readonly #traces = new Map<number, RequestTrace>();
  /** Versions that answer requests for the version of a key, and for the latest one when that was it. */
  readonly #models = new Map<number, { latest: FoundModel | undefined; named: FoundModel | undefined }>();
  #closed = false;

  constructor(
    private readonly service: InferenceService,
    private readonly versions: ServiceState,
    private readonly link: () => ThreadLink,
  ) {}

  frame(frame: IncomingFrame): void {
    if (frame.kind === KIND.request) {
      this.#receive(frame);
      return;
    }
    if (frame.kind === KIND.traced) {
      this.#traced(frame);
      return;
    }
    const request = this.#requests.get(frame.number);
    if (request === undefined) return;
    switch (frame.kind) {
      case KIND.cancel:
        request.cancelled = readFramedError(frame);
        request.exchange?.cancel(request.cancelled);
        break;
      case KIND.pause:
        request.paused = true;
        request.exchange?.pause();
        break;
      case KIND.resume:
        request.paused = false;
        if (!this.link().behind) request.exchange?.resume();
        break;
      case KIND.stop:
        request.exchange?.askToStop();
        break;
    }
  }

  /** Lets requests go on that waited because the thread was behind. */
  drained(): void {
    for (const request of this.#requests.values()) if (!request.paused) request.exchange?.resume();
  }

  /** Records the trace of a request that never came, because it could not be decoded. */
  tracedThere(modelName: string, arrival: SentArrival, status: number | string | undefined): void {
    this.#sample(modelName, arrival)?.release(status);
  }

  /** Cancels all requests: the thread has ended, and with it the connections of their clients. */
  close(): void {
    this.#closed = true;
    const reason = errorWithoutStack("CANCELLED", "the frontend thread of the request has ended");
    for (const { exchange } of this.#requests.values()) exchange?.cancel(reason);
    for (const trace of this.#traces.values()) trace.release();
    this.#traces.clear();
  }

  #traced(frame: IncomingFrame): void {
    const { number } = frame;
    const trace = this.#traces.get(number);
    if (trace === undefined) return;
    this.#traces.delete(number);
    const { marks, status }: TraceEnd = JSON.parse(frame.text());
    for (const [name, atMs] of marks) trace.mark(name, atMs);
    trace.release(status);
  }

  #receive(frame: IncomingFrame): void {
    const { number } = frame;
    const target = readRequestKey(frame);
    const version = this.versions.get(target.key);
    if (version === undefined) {
      this.refuse(new EngineRequest(this, number, "", NO_VERSION), forgotten());
      return;
    }
    const init = new ReceivedRequest(frame, version);
    const request = new EngineRequest(this, number, init.id, version);
    this.#requests.set(number, request);
    try {
      const requested = target.latest ? "" : String(version.version);
      const exchange = new Exchange(
        this.service,
        undefined,
        this.#model(target, version.name, requested),
        requested,
      );
      request.exchange = exchange;
      const turn = exchange.turn(init.id);
      if (turn === undefined) this.#send(request, exchange, init);
      else void this.#sendInTurn(turn, request, exchange, init);
    } catch (error) {
      this.refuse(request, error);
    }
  }

  async #sendInTurn(
    turn: Promise<void>,
    request: EngineRequest,
    exchange: Exchange,
    init: ReceivedRequest,
  ): Promise<void> {
    try {
      await turn;
      exchange.current();
      this.#send(request, exchange, init);
    } catch (error) {
      this.refuse(request, error);
    }
  }

  #send(request: EngineRequest, exchange: Exchange, init: ReceivedRequest): void {
    if (this.#closed || request.cancelled !== undefined) {
      this.#requests.delete(request.number);
      return;
    }
    if (init.arrival !== undefined) {
      init.trace = this.#sample(request.modelName, JSON.parse(init.arrival));
      if (init.trace !== undefined) this.#traces.set(request.number, init.trace);
    }
    void exchange.send(init, request);
    if (request.paused) exchange.pause();
  }

  answer(request: EngineRequest, outcome: InferenceResponse | TritonError | undefined, final: boolean): void {
    if (this.#closed) return;
    const { number, exchange } = request;
    if (final) this.#requests.delete(number);
    if (request.cancelled !== undefined) return;
    const link = this.link();
    try {
      writeResponse(link.outgoing, number, request, outcome, final);
    } catch (error) {
      // Outputs that have no bytes end the request.
      writeResponse(link.outgoing, number, request, TritonError.from(error), true);
      request.cancelled = TritonError.from(error);
      exchange?.cancel(request.cancelled);
    }
    link.send();
    if (!final && link.behind) exchange?.pause();
  }

  refuse(request: EngineRequest, error: unknown): void {
    this.#requests.delete(request.number);
    if (this.#closed || request.cancelled !== undefined) return;
    const link = this.link();
    writeResponse(link.outgoing, request.number, request, TritonError.from(error), true, true);
    link.send();
  }

  #model({ key, latest }: Omit<RequestTarget, "config">, name: string, requested: string): FoundModel {
    let found = this.#models.get(key);
    if (found === undefined) {
      found = { latest: undefined, named: undefined };
      this.#models.set(key, found);
    }
    const which = latest ? "latest" : "named";
    const known = found[which];
    if (known?.inService) return known;
    const model = this.service.model(name, requested);
    found[which] = model;
    return model;
  }

  #sample(modelName: string, arrival: SentArrival): RequestTrace | undefined {
    const { protocol, startMs, headers, attributes, marks } = arrival;
    const trace = this.service.tracing?.sample(modelName, {
      protocol,
      startMs,
      header: (name) => headers[name.toLowerCase()],
      attributes: () => attributes,
    });
    for (const [name, atMs] of marks) trace?.mark(name, atMs);
    return trace;
  }
}

/** Stands for the version of a request that cannot be read. */
const NO_VERSION = { name: "", version: 0, config: { output: [] as ModelConfig["output"] } };

function forgotten(): TritonError {
  const text = "the model was replaced many times while the request was on its way: send it again";
  return errorWithoutStack("UNAVAILABLE", text, { reason: "MODEL_NOT_READY" });
}

/** Number of versions out of service that are still known, for requests that were on their way. */
const MAX_RETIRED = 256;

/** The state of a service that its threads copy, kept for threads that start later. */
export class ServiceState {
  readonly #models = new Map<string, WatchedModel>();
  readonly #versions = new Map<number, ReadyVersion>();
  readonly #retired: number[] = [];
  #server: ServiceChange["server"];
  #regions: ServiceChange["regions"];
  readonly #stop: () => void;

  /**
   * @param onChange called with each change, at once
   * @throws TritonError INVALID_ARG for a service that cannot be copied
   */
  constructor(
    readonly service: InferenceService,
    readonly data: Omit<ServiceData, "memoryRow" | "state">,
    onChange: (change: ServiceChange) => void,
  ) {
    if (service.watch === undefined) {
      throw errorFor("INVALID_OPTION", "frontend threads need the service of a Triton, got another one");
    }
    this.#stop = service.watch((change) => {
      this.#keep(change);
      onChange(change);
    });
  }

  /** Finds a version by its key, also shortly after it was replaced. */
  get(key: number): ReadyVersion | undefined {
    return this.#versions.get(key);
  }

  snapshot(): ServiceChange {
    return { server: this.#server, models: [...this.#models.values()], regions: this.#regions };
  }

  close(): void {
    this.#stop();
  }

  #keep({ server, models, regions }: ServiceChange): void {
    this.#server = server ?? this.#server;
    this.#regions = regions ?? this.#regions;
    for (const model of models) {
      const id = `${model.name}\0${model.namespace}`;
      const gone = new Set(this.#models.get(id)?.versions?.map(({ key }) => key));
      for (const version of model.versions ?? []) {
        gone.delete(version.key);
        if (version.config !== undefined) this.#versions.set(version.key, version as ReadyVersion);
      }
      for (const key of gone) this.#retire(key);
      if (model.versions === undefined) this.#models.delete(id);
      else this.#models.set(id, model);
    }
  }

  #retire(key: number): void {
    this.#retired.push(key);
    if (this.#retired.length > MAX_RETIRED) this.#versions.delete(this.#retired.shift()!);
  }
}
