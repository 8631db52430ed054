import {
  type InferenceRequest,
  Log,
  type LogChanges,
  type LogSettings,
  type LogSubject,
  type RequestArrival,
  type RequestHandle,
  type RequestSender,
  type RequestTrace,
  realClock,
  type TraceChanges,
  type TraceSettings,
  Tracing,
} from "@tritonjs/core/internal/server";
import { errorWithoutStack, type ModelConfig, type TritonError } from "@tritonjs/protocol";
import type { Control } from "./control.js";
import type { SentArrival, TraceEnd, TraceMark } from "./engine-requests.js";
import { type IncomingFrame, KIND } from "./frames.js";
import {
  type AnsweredRequest,
  RESPONSE,
  RequestSlots,
  type RequestTarget,
  readOutcome,
  writeFramedError,
  writeRequest,
} from "./request-frames.js";
import type { ThreadLink } from "./thread-link.js";

/** The version that a request is for, as one look-up found it. */
type SentModel = RequestTarget & { readonly name: string; readonly version: number };

/** The requests of a thread that the engine has not answered yet. */
export class SentRequests {
  readonly #requests = new RequestSlots<SentRequest>();

  constructor(private readonly link: () => ThreadLink) {}

  /** Sends a request to the engine. Memory of its large tensors is handed over. */
  send(model: SentModel, content: InferenceRequest): RequestHandle {
    const request = new SentRequest(this, content, model);
    const number = this.#requests.add(request);
    request.number = number;
    try {
      const link = this.link();
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

  over(number: number): void {
    this.#requests.delete(number);
  }

  /** Ends a trace behind its request, which may still wait to be read. */
  #endTrace(number: number, end: TraceEnd): void {
    const link = this.link();
    link.outgoing.open(KIND.traced, number).text(JSON.stringify(end));
    link.outgoing.close(0);
    link.send();
  }

  tell(number: number, kind: number, reason?: TritonError): void {
    const link = this.link();
    link.outgoing.open(kind, number);
    if (reason !== undefined) writeFramedError(link.outgoing, reason);
    link.outgoing.close(0);
    link.send();
  }
}

class SentRequest implements RequestHandle, AnsweredRequest {
  settled = false;
  refused = false;
  number = 0;
  readonly id: string;
  readonly modelName: string;
  readonly modelVersion: string;
  readonly config: Pick<ModelConfig, "output">;
  readonly #requests: SentRequests;
  readonly #sender: RequestSender;
  #paused = false;

  constructor(
    requests: SentRequests,
    { id, sender }: InferenceRequest,
    { name, version, config }: SentModel,
  ) {
    this.#requests = requests;
    this.id = id;
    this.modelName = name;
    this.modelVersion = String(version);
    this.config = config;
    this.#sender = sender;
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

  #handOver(outcome: Parameters<RequestSender["receive"]>[0], final: boolean): void {
    try {
      this.#sender.receive(outcome, final, this);
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
  #marks: TraceMark[] = [];
  /** Ends the trace in the engine; undefined for a request that never went there. */
  #end: ((end: TraceEnd) => void) | undefined;

  constructor(
    private readonly control: Control,
    private readonly modelName: string,
    private readonly arrival: RequestArrival,
  ) {}

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
    if (this.#end === undefined) this.control.tell("tracedHere", this.modelName, this.#sent(), status);
    else this.#end({ marks: this.#marks, status });
  }

  /** The beginning of the trace, with the marks so far. */
  #sent(): SentArrival {
    const { protocol, startMs } = this.arrival;
    const headers: Record<string, string> = {};
    for (const name of TRACE_HEADERS) {
      const value = this.arrival.header(name);
      if (value !== undefined) headers[name] = value;
    }
    const marks = this.#marks;
    this.#marks = [];
    return { protocol, startMs, headers, attributes: this.arrival.attributes?.() ?? {}, marks };
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

  take(settings: LogSettings): void {
    this.#mirrored = settings;
    super.update(settings);
  }
}
