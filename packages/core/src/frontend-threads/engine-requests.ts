import { errorWithoutStack, type ModelConfig, TritonError } from "@tritonjs/protocol";
import type { RequestArrival, RequestTrace } from "../observe/request-trace.js";
import type { RequestHandle } from "../request/inference-request.js";
import type { InferenceResponse } from "../request/inference-response.js";
import type { InferenceService, PinnedModel, RoomWait } from "../service/inference-service.js";
import type { WatchedVersion } from "../service/service-watch.js";
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

/** The versions that a thread may name, by key. */
export interface KnownVersions {
  get(key: number): (WatchedVersion & { readonly config: ModelConfig }) | undefined;
}

/** One request of a thread. */
class EngineRequest implements AnsweredRequest {
  handle: RequestHandle | undefined;
  /** Set while the request waits at a full queue. */
  wait: RoomWait | undefined;
  cancelled: TritonError | undefined;
  /** The client cannot take more responses for now. */
  paused = false;

  constructor(
    readonly id: string,
    readonly modelName: string,
    readonly modelVersion: string,
    readonly config: Pick<ModelConfig, "output">,
  ) {}
}

/** The requests of one thread, from their frames to their answers. */
export class EngineRequests {
  readonly #service: InferenceService;
  readonly #versions: KnownVersions;
  readonly #link: () => ThreadLink;
  readonly #requests = new RequestSlots<EngineRequest>();
  /** Traces that the thread has not finished yet. */
  readonly #traces = new Map<number, RequestTrace>();
  /** Pins of the versions that requests have named, by key. */
  readonly #pins = new Map<number, { latest: PinnedModel | undefined; named: PinnedModel | undefined }>();
  #closed = false;

  constructor(service: InferenceService, versions: KnownVersions, link: () => ThreadLink) {
    this.#service = service;
    this.#versions = versions;
    this.#link = link;
  }

  /** Takes a frame. */
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
        request.wait?.leave();
        request.handle?.cancel(request.cancelled);
        break;
      case KIND.pause:
        request.paused = true;
        request.handle?.pause();
        break;
      case KIND.resume:
        request.paused = false;
        if (!this.#link().behind) request.handle?.resume();
        break;
      case KIND.stop:
        request.handle?.askToStop();
        break;
    }
  }

  /** Lets requests go on that waited because the thread was behind. */
  drained(): void {
    for (const request of this.#requests.values()) if (!request.paused) request.handle?.resume();
  }

  /** Records the trace of a request that never came, because it could not be decoded. */
  tracedThere(modelName: string, arrival: SentArrival, status: number | string | undefined): void {
    this.#sample(modelName, arrival)?.release(status);
  }

  /** Cancels all requests: the thread has ended, and with it the connections of their clients. */
  close(): void {
    this.#closed = true;
    const reason = errorWithoutStack("CANCELLED", "the frontend thread of the request has ended");
    for (const { handle, wait } of this.#requests.values()) {
      wait?.leave();
      handle?.cancel(reason);
    }
    for (const trace of this.#traces.values()) trace.release();
    this.#traces.clear();
  }

  /** Adds the last marks of a trace, and releases it. */
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
    const version = this.#versions.get(target.key);
    if (version === undefined) {
      const unknown = new EngineRequest("", "", "", NO_OUTPUTS);
      this.#refuse(number, unknown, forgotten());
      return;
    }
    const { config, name } = version;
    const init = new ReceivedRequest(frame, config);
    const request = new EngineRequest(init.id, name, String(version.version), config);
    this.#requests.set(number, request);
    try {
      const pin = this.#pin(target, version);
      request.wait = pin.awaitRoom(init.id);
      if (request.wait === undefined) this.#send(number, request, pin, init);
      else {
        request.wait.turn.then(
          () => this.#sendLater(number, request, pin, init),
          (error) => this.#refuse(number, request, error),
        );
      }
    } catch (error) {
      this.#refuseInTurn(number, request, error);
    }
  }

  #sendLater(number: number, request: EngineRequest, pin: PinnedModel, init: ReceivedRequest): void {
    try {
      this.#send(number, request, pin.inService(), init);
    } catch (error) {
      this.#refuseInTurn(number, request, error);
    }
  }

  #send(number: number, request: EngineRequest, pin: PinnedModel, init: ReceivedRequest): void {
    if (this.#closed || request.cancelled !== undefined) {
      this.#requests.delete(number);
      return;
    }
    if (init.arrival !== undefined) {
      init.trace = this.#sample(pin.name, JSON.parse(init.arrival));
      if (init.trace !== undefined) this.#traces.set(number, init.trace);
    }
    const handle = pin.infer(init, (outcome, final, running) => {
      request.handle = running;
      this.#answer(number, request, outcome, final);
    });
    if (handle.settled) return;
    request.handle = handle;
    if (request.paused) handle.pause();
  }

  #answer(
    number: number,
    request: EngineRequest,
    outcome: InferenceResponse | TritonError | undefined,
    final: boolean,
  ): void {
    if (this.#closed) return;
    if (final) this.#requests.delete(number);
    if (request.cancelled !== undefined) return;
    const link = this.#link();
    try {
      writeResponse(link.outgoing, number, request, outcome, final);
    } catch (error) {
      // Outputs that have no bytes end the request.
      writeResponse(link.outgoing, number, request, TritonError.from(error), true);
      request.cancelled = TritonError.from(error);
      request.handle?.cancel(request.cancelled);
    }
    link.send();
    if (!final && link.behind) request.handle?.pause();
  }

  /** Refuses a request when it is the refusal's turn: clients that retry at once must not slow running requests down. */
  #refuseInTurn(number: number, request: EngineRequest, error: unknown): void {
    const turn =
      TritonError.is(error) && error.code === "UNAVAILABLE" ? this.#service.refusalTurn?.() : undefined;
    if (turn === undefined) this.#refuse(number, request, error);
    else void turn.then(() => this.#refuse(number, request, error));
  }

  #refuse(number: number, request: EngineRequest, error: unknown): void {
    this.#requests.delete(number);
    if (this.#closed || request.cancelled !== undefined) return;
    const link = this.#link();
    writeResponse(link.outgoing, number, request, TritonError.from(error), true, true);
    link.send();
  }

  #pin({ key, latest }: Omit<RequestTarget, "config">, { name, version }: WatchedVersion): PinnedModel {
    let pins = this.#pins.get(key);
    if (pins === undefined) {
      pins = { latest: undefined, named: undefined };
      this.#pins.set(key, pins);
    }
    const which = latest ? "latest" : "named";
    const pin = pins[which]?.inService() ?? this.#service.model(name, latest ? "" : String(version));
    pins[which] = pin;
    return pin;
  }

  #sample(modelName: string, arrival: SentArrival): RequestTrace | undefined {
    const { protocol, startMs, headers, attributes, marks } = arrival;
    const trace = this.#service.tracing?.sample(modelName, {
      protocol,
      startMs,
      header: (name) => headers[name.toLowerCase()],
      attributes: () => attributes,
    });
    for (const [name, atMs] of marks) trace?.mark(name, atMs);
    return trace;
  }
}

const NO_OUTPUTS: Pick<ModelConfig, "output"> = { output: [] };

function forgotten(): TritonError {
  const text = "the model was replaced many times while the request was on its way: send it again";
  return errorWithoutStack("UNAVAILABLE", text, { reason: "MODEL_NOT_READY" });
}
