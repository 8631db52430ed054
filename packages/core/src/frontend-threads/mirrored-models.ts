import { join } from "node:path";
import { errorWithoutStack, type ModelConfig, type TritonError } from "@tritonjs/protocol";
import { parseVersion, pickNamespace, pickVersion } from "../model/pick-version.js";
import { Log, type LogChanges, type LogSettings, type LogSubject } from "../observe/log.js";
import type { RequestArrival, RequestTrace } from "../observe/request-trace.js";
import type { TraceChanges, TraceSettings } from "../observe/trace-settings.js";
import { Tracing } from "../observe/tracing.js";
import {
  type InferenceRequest,
  type InferInit,
  type RequestHandle,
  type ResponseHandler,
  requestOf,
} from "../request/inference-request.js";
import type { PinnedModel } from "../service/inference-service.js";
import type { WatchedModel, WatchedVersion } from "../service/service-watch.js";
import { realClock } from "../system/clock.js";
import type { Control } from "./control.js";
import type { ReadyVersion, SentArrival, TraceEnd, TraceMark } from "./engine-requests.js";
import { type IncomingFrame, KIND } from "./frames.js";
import {
  type AnsweredRequest,
  RESPONSE,
  RequestSlots,
  readOutcome,
  writeFramedError,
  writeRequest,
} from "./request-frames.js";
import type { ThreadLink } from "./thread-link.js";

/** The parts of its thread that the copies of models use. */
interface ModelsOwner {
  /** Takes the changes of the service that the engine has sent by now. */
  catchUp(): void;
  /** @throws TritonError UNAVAILABLE while the server refuses requests. */
  assertOpen(): void;
  /** Sends a request to the engine. */
  send(model: MirroredModel, request: InferenceRequest): RequestHandle;
}

/** The copies of all model versions, and the look-ups of the protocol with Triton's texts. */
export class MirroredModels {
  readonly #models = new Map<string, Map<string, Map<number, WatchedVersion>>>();
  readonly #namespacing: boolean;
  readonly #owner: ModelsOwner;

  constructor(namespacing: boolean, owner: ModelsOwner) {
    this.#namespacing = namespacing;
    this.#owner = owner;
  }

  /** Takes a change. */
  set({ name, namespace, versions }: WatchedModel): void {
    let spaces = this.#models.get(name);
    if (versions === undefined) {
      spaces?.delete(namespace);
      if (spaces?.size === 0) this.#models.delete(name);
      return;
    }
    if (spaces === undefined) {
      spaces = new Map();
      this.#models.set(name, spaces);
    }
    spaces.set(namespace, new Map(versions.map((version) => [version.version, version])));
  }

  /** True if a model in service reports its own readiness. */
  get someReportReadiness(): boolean {
    for (const spaces of this.#models.values()) {
      for (const versions of spaces.values()) {
        for (const { state, reportsReadiness } of versions.values()) {
          if (state === "READY" && reportsReadiness) return true;
        }
      }
    }
    return false;
  }

  /** @throws TritonError as the service of the engine does. */
  find(name: string, requested: string): ReadyVersion {
    this.#owner.catchUp();
    this.#owner.assertOpen();
    const version = parseVersion(requested);
    const versions = pickNamespace(name, this.#models.get(name), this.#namespacing);
    return pickVersion(name, versions, version) as ReadyVersion;
  }

  pin(name: string, requested: string): MirroredModel {
    return new MirroredModel(this, this.#owner, this.find(name, requested), requested);
  }

  /** Numbers of the ready versions of a model, in ascending order. */
  readyVersions(name: string): number[] {
    const spaces = [...(this.#models.get(name)?.values() ?? [])];
    const ready = spaces.flatMap((versions) =>
      [...versions.values()].filter(({ state }) => state === "READY"),
    );
    return ready.map(({ version }) => version).sort((a, b) => a - b);
  }

  /** True while a version is in service. */
  has({ name, namespace, version, key }: WatchedVersion): boolean {
    this.#owner.catchUp();
    const now = this.#models.get(name)?.get(namespace)?.get(version);
    return now?.key === key && now.state === "READY";
  }
}

/** The copy of a model version that one look-up has found. */
class MirroredModel implements PinnedModel {
  readonly config: ModelConfig;
  readonly #models: MirroredModels;
  readonly #owner: ModelsOwner;
  readonly #version: ReadyVersion;
  readonly #requested: string;

  constructor(models: MirroredModels, owner: ModelsOwner, version: ReadyVersion, requested: string) {
    this.config = version.config;
    this.#models = models;
    this.#owner = owner;
    this.#version = version;
    this.#requested = requested;
  }

  get key(): number {
    return this.#version.key;
  }

  /** True if the client named no version. */
  get latest(): boolean {
    return this.#requested === "";
  }

  get name(): string {
    return this.#version.name;
  }

  get version(): number {
    return this.#version.version;
  }

  get labels(): ReadonlyMap<string, readonly string[]> {
    return this.#version.labels;
  }

  get directory(): string | undefined {
    const { directory, version } = this.#version;
    return directory && join(directory, String(version));
  }

  inService(): MirroredModel {
    return this.#models.has(this.#version) ? this : this.#models.pin(this.name, this.#requested);
  }

  /** The engine looks whether there is room, when the request arrives there. */
  awaitRoom(): undefined {
    return undefined;
  }

  infer(init: InferInit, onResponse: ResponseHandler): RequestHandle {
    this.#owner.assertOpen();
    return this.#owner.send(this, requestOf(init, this.name, onResponse));
  }
}

/** The requests of a thread that the engine has not answered yet. */
export class SentRequests {
  readonly #link: () => ThreadLink;
  readonly #requests = new RequestSlots<SentRequest>();

  constructor(link: () => ThreadLink) {
    this.#link = link;
  }

  /** Sends a request to the engine. Memory of its large tensors is handed over. */
  send(model: MirroredModel, content: InferenceRequest): RequestHandle {
    const request = new SentRequest(this, content, model);
    const number = this.#requests.add(request);
    request.number = number;
    try {
      const link = this.#link();
      const trace =
        content.trace instanceof MirroredTrace
          ? content.trace.sentWith((end) => this.#endTrace(number, end))
          : undefined;
      writeRequest(link.outgoing, number, model, content, trace);
      link.send();
    } catch (error) {
      this.#requests.delete(number);
      throw error;
    }
    return request;
  }

  /** Takes a response. Those to requests that were given up have no effect. */
  frame(frame: IncomingFrame): void {
    this.#requests.get(frame.number)?.receive(frame);
  }

  /** Notes that a request is over. */
  over(number: number): void {
    this.#requests.delete(number);
  }

  /** Ends a trace behind its request, which may still wait to be read. */
  #endTrace(number: number, end: TraceEnd): void {
    const link = this.#link();
    link.outgoing.open(KIND.traced, number).text(JSON.stringify(end));
    link.outgoing.close(0);
    link.send();
  }

  /** Tells the engine something about a request. */
  tell(number: number, kind: number, reason?: TritonError): void {
    const link = this.#link();
    link.outgoing.open(kind, number);
    if (reason !== undefined) writeFramedError(link.outgoing, reason);
    link.outgoing.close(0);
    link.send();
  }
}

/** A request that is with the engine. */
class SentRequest implements RequestHandle, AnsweredRequest {
  settled = false;
  refused = false;
  number = 0;
  readonly id: string;
  readonly modelName: string;
  readonly modelVersion: string;
  readonly config: Pick<ModelConfig, "output">;
  readonly #requests: SentRequests;
  readonly #onResponse: ResponseHandler;
  #paused = false;

  constructor(
    requests: SentRequests,
    { id, onResponse }: InferenceRequest,
    { name, version, config }: MirroredModel,
  ) {
    this.#requests = requests;
    this.id = id;
    this.modelName = name;
    this.modelVersion = String(version);
    this.config = config;
    this.#onResponse = onResponse;
  }

  receive(frame: IncomingFrame): void {
    const outcome = readOutcome(frame, this);
    const final = (frame.flags & RESPONSE.final) !== 0;
    this.refused = (frame.flags & RESPONSE.refused) !== 0;
    if (final) this.#end();
    this.#handOver(outcome, final);
  }

  cancel(given?: TritonError): boolean {
    if (this.settled) return false;
    const reason = given ?? errorWithoutStack("CANCELLED", "the request was cancelled");
    this.#end();
    this.#requests.tell(this.number, KIND.cancel, reason);
    this.#handOver(reason, true);
    return true;
  }

  /** The model may not be able to stop. This thread does not wait to learn that. */
  askToStop(): boolean {
    if (!this.settled) this.#requests.tell(this.number, KIND.stop);
    return !this.settled;
  }

  pause(): void {
    if (this.settled || this.#paused) return;
    this.#paused = true;
    this.#requests.tell(this.number, KIND.pause);
  }

  resume(): void {
    if (this.settled || !this.#paused) return;
    this.#paused = false;
    this.#requests.tell(this.number, KIND.resume);
  }

  #end(): void {
    this.settled = true;
    this.#requests.over(this.number);
  }

  #handOver(outcome: Parameters<ResponseHandler>[0], final: boolean): void {
    try {
      this.#onResponse(outcome, final, this);
    } catch (error) {
      process.emitWarning(error instanceof Error ? error : String(error));
    }
  }
}

/** Headers that carry the trace of a client, in the formats of W3C, Zipkin, Jaeger, AWS and Google Cloud. */
const TRACE_HEADERS = [
  "traceparent",
  "tracestate",
  "baggage",
  "b3",
  "x-b3-traceid",
  "x-b3-spanid",
  "x-b3-parentspanid",
  "x-b3-sampled",
  "x-b3-flags",
  "uber-trace-id",
  "x-amzn-trace-id",
  "x-cloud-trace-context",
  "grpc-trace-bin",
];

/** The traces of the engine, as a thread sees them. The engine decides which requests are traced. */
export class MirroredTracing extends Tracing {
  /** True while requests may be traced. */
  isOn = false;
  readonly #control: Control;

  /** @param timeOrigin of the engine, on whose clock all times are */
  constructor(control: Control, log: MirroredLog, timeOrigin: number) {
    const aheadMs = performance.timeOrigin - timeOrigin;
    super({}, { ...realClock, now: () => performance.now() + aheadMs }, log);
    this.#control = control;
  }

  override settings(modelName = ""): TraceSettings {
    return this.#control.callSync("traceSettings", modelName);
  }

  override update(modelName: string, changes: TraceChanges): void {
    this.#control.callSync("updateTraces", modelName, changes);
  }

  override sample(modelName: string, arrival?: RequestArrival): RequestTrace | undefined {
    if (!this.isOn || arrival === undefined) return undefined;
    return new MirroredTrace(this.#control, modelName, arrival);
  }
}

/** The part of a trace that a frontend adds. It goes to the engine with the request and after the answer. */
class MirroredTrace implements RequestTrace {
  readonly traceId = undefined;
  readonly traceparent = undefined;
  readonly sampled = true;
  readonly #control: Control;
  readonly #modelName: string;
  readonly #arrival: RequestArrival;
  #marks: TraceMark[] = [];
  /** Ends the trace in the engine; undefined for a request that never went there. */
  #end: ((end: TraceEnd) => void) | undefined;

  constructor(control: Control, modelName: string, arrival: RequestArrival) {
    this.#control = control;
    this.#modelName = modelName;
    this.#arrival = arrival;
  }

  /** The beginning of the trace for the engine, as JSON. It is sent now, and `end` later. */
  sentWith(end: (end: TraceEnd) => void): string {
    this.#end = end;
    return JSON.stringify(this.#sent());
  }

  mark(name: string, atMs: number): void {
    this.#marks.push([name, atMs]);
  }

  release(status?: number | string): void {
    // A request that could not be decoded never went to the engine.
    if (this.#end === undefined) this.#control.tell("tracedHere", this.#modelName, this.#sent(), status);
    else this.#end({ marks: this.#marks, status });
  }

  /** The beginning of the trace, with the marks so far. */
  #sent(): SentArrival {
    const { protocol, startMs } = this.#arrival;
    const headers: Record<string, string> = {};
    for (const name of TRACE_HEADERS) {
      const value = this.#arrival.header(name);
      if (value !== undefined) headers[name] = value;
    }
    const marks = this.#marks;
    this.#marks = [];
    return { protocol, startMs, headers, attributes: this.#arrival.attributes?.() ?? {}, marks };
  }

  child(): RequestTrace {
    return this;
  }

  within<T>(fn: () => T): T {
    return fn();
  }

  begin(): void {}
  batch(): void {}
  compute(): void {}
  outputs(): void {}
  end(): void {}
}

/** The log of the engine, as a thread writes to it. */
export class MirroredLog extends Log {
  readonly #control: Control;
  #mirrored: LogSettings;

  constructor(control: Control, settings: LogSettings) {
    super(
      {
        takesSubjects: true,
        error: (message: string, about?: LogSubject) => control.tell("log", "error", message, about),
        warn: (message: string, about?: LogSubject) => control.tell("log", "warning", message, about),
        info: (message: string, about?: LogSubject) => control.tell("log", "info", message, about),
        debug: (message: string, about?: LogSubject) => control.tell("logVerbose", message, about),
      } as ConstructorParameters<typeof Log>[0],
      settings,
    );
    this.#control = control;
    this.#mirrored = settings;
  }

  override get settings(): LogSettings {
    this.#control.catchUp();
    return this.#mirrored;
  }

  override update(changes: LogChanges): void {
    this.#control.callSync("updateLog", changes);
  }

  /** Takes the settings of the engine. */
  take(settings: LogSettings): void {
    this.#mirrored = settings;
    super.update(settings);
  }
}
