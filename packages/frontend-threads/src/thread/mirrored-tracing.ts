import {
  type RequestArrival,
  type RequestTrace,
  type TraceChanges,
  type TraceSettings,
  Tracing,
} from "@tritonjs/core/frontend";
import type { SentArrival, TraceEnd, TraceMark } from "../engine/engine-requests.js";
import type { Control } from "../messages/control.js";
import type { MirroredLog } from "./mirrored-log.js";

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
  readonly #aheadMs: number;

  /** @param timeOrigin of the engine, on whose clock all times are */
  constructor(control: Control, log: MirroredLog, timeOrigin: number) {
    super({}, engineClock(performance.timeOrigin - timeOrigin), log);
    this.#control = control;
    this.#aheadMs = performance.timeOrigin - timeOrigin;
  }

  override now(): number {
    return performance.now() + this.#aheadMs;
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

function engineClock(aheadMs: number) {
  return {
    now: () => performance.now() + aheadMs,
    wallNow: () => Date.now(),
    setTimer: (delayMs: number, run: () => void) => {
      const timer = setTimeout(run, delayMs);
      return { cancel: () => clearTimeout(timer) };
    },
    defer: (run: () => void) => void setImmediate(run),
  };
}

/** The part of a trace that a frontend adds. It goes to the engine with the request and after the answer. */
export class MirroredTrace implements RequestTrace {
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

  /** What the engine needs to begin the trace, as JSON. It is sent now, and `end` later. */
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
