import { randomFillSync } from "node:crypto";
import {
  type Attributes,
  type AttributeValue,
  type Context,
  context,
  createTraceState,
  isSpanContextValid,
  type Link,
  type Span,
  type SpanContext,
  SpanKind,
  type SpanOptions,
  type SpanStatus,
  SpanStatusCode,
  type TextMapGetter,
  type TextMapPropagator,
  type TimeInput,
  TraceFlags,
  type Tracer,
  trace,
} from "@opentelemetry/api";

/**
 * Makes spans that become JSON of OTLP as they end, so that nothing but a text waits to be sent. All spans are sampled:
 * the trace settings of the server decide which requests are traced.
 */
export class OtlpTracer implements Tracer {
  /** @param onEnd called with the JSON of each span that has ended */
  constructor(private readonly onEnd: (json: string) => void) {}

  startSpan(name: string, options: SpanOptions = {}, within: Context = context.active()): Span {
    const parent = options.root === true ? undefined : trace.getSpanContext(within);
    return new OtlpSpan(
      name,
      options,
      parent !== undefined && isSpanContextValid(parent) ? parent : undefined,
      this.onEnd,
    );
  }

  startActiveSpan<F extends (span: Span) => unknown>(name: string, ...rest: unknown[]): ReturnType<F> {
    const [options, within] = rest.slice(0, -1) as [SpanOptions?, Context?];
    const parent = within ?? context.active();
    const span = this.startSpan(name, options, parent);
    const fn = rest.at(-1) as (span: Span) => ReturnType<F>;
    return context.with(trace.setSpan(parent, span), () => fn(span));
  }
}

class OtlpSpan implements Span {
  readonly #context: SpanContext;
  readonly #start: string;
  readonly #kind: SpanKind;
  #attributes: Attributes;
  #events = "";
  #links = "";
  #status: SpanStatus = { code: SpanStatusCode.UNSET };
  #ended = false;

  constructor(
    private name: string,
    { attributes, kind = SpanKind.INTERNAL, startTime, links }: SpanOptions,
    private readonly parent: SpanContext | undefined,
    private readonly onEnd: (json: string) => void,
  ) {
    this.#context = {
      traceId: parent?.traceId ?? randomId(16),
      spanId: randomId(8),
      traceFlags: TraceFlags.SAMPLED,
      ...(parent?.traceState !== undefined && { traceState: parent.traceState }),
    };
    this.#start = nanoseconds(startTime);
    this.#kind = kind;
    this.#attributes = { ...attributes };
    if (links !== undefined) this.addLinks(links);
  }

  spanContext(): SpanContext {
    return this.#context;
  }

  setAttribute(key: string, value: AttributeValue): this {
    this.#attributes[key] = value;
    return this;
  }

  setAttributes(attributes: Attributes): this {
    Object.assign(this.#attributes, attributes);
    return this;
  }

  addEvent(name: string, attributesOrTime?: Attributes | TimeInput, time?: TimeInput): this {
    const isTime = isTimeInput(attributesOrTime);
    const at = nanoseconds(isTime ? attributesOrTime : time);
    const own = isTime || attributesOrTime === undefined ? "" : attributesJson(attributesOrTime);
    const before = this.#events === "" ? "" : ",";
    this.#events += `${before}{"timeUnixNano":"${at}","name":${quoted(name)}${own}}`;
    return this;
  }

  addLink({ context: { traceId, spanId }, attributes = {} }: Link): this {
    const before = this.#links === "" ? "" : ",";
    this.#links += `${before}{"traceId":"${traceId}","spanId":"${spanId}"${attributesJson(attributes)}}`;
    return this;
  }

  addLinks(links: readonly Link[]): this {
    for (const link of links) this.addLink(link);
    return this;
  }

  setStatus(status: SpanStatus): this {
    this.#status = status;
    return this;
  }

  updateName(name: string): this {
    this.name = name;
    return this;
  }

  recordException(exception: Parameters<Span["recordException"]>[0], time?: TimeInput): void {
    const { name, message, stack } = typeof exception === "string" ? { message: exception } : exception;
    this.addEvent(
      "exception",
      { "exception.type": name, "exception.message": message, "exception.stacktrace": stack },
      time,
    );
  }

  isRecording(): boolean {
    return !this.#ended;
  }

  end(time?: TimeInput): void {
    if (this.#ended) return;
    this.#ended = true;
    this.onEnd(this.#json(nanoseconds(time)));
  }

  /** The message `Span` of OTLP. Fields with their default values are left out. */
  #json(end: string): string {
    const { traceId, spanId, traceState } = this.#context;
    const { parent } = this;
    const { code, message } = this.#status;
    const flags = TraceFlags.SAMPLED | HAS_IS_REMOTE | (parent?.isRemote === true ? IS_REMOTE : 0);
    const above = parent === undefined ? "" : `,"parentSpanId":"${parent.spanId}"`;
    const state = traceState === undefined ? "" : `,"traceState":${JSON.stringify(traceState.serialize())}`;
    const said = message === undefined ? "" : `,"message":${JSON.stringify(message)}`;
    const status = code === SpanStatusCode.UNSET ? "" : `,"status":{"code":${code}${said}}`;
    const events = this.#events === "" ? "" : `,"events":[${this.#events}]`;
    const links = this.#links === "" ? "" : `,"links":[${this.#links}]`;
    return (
      `{"traceId":"${traceId}","spanId":"${spanId}"${state}${above},"flags":${flags},"name":${quoted(this.name)},` +
      `"kind":${this.#kind + 1},"startTimeUnixNano":"${this.#start}","endTimeUnixNano":"${end}"` +
      `${attributesJson(this.#attributes)}${events}${links}${status}}`
    );
  }
}

/** Bits of `flags` in OTLP: whether it is known that the parent is of another process, and whether it is. */
const HAS_IS_REMOTE = 0x100;
const IS_REMOTE = 0x200;

const POOL = Buffer.alloc(4096);
let taken = POOL.length;

/** Random bytes in hexadecimal. */
function randomId(byteLength: number): string {
  if (taken + byteLength > POOL.length) {
    randomFillSync(POOL);
    taken = 0;
  }
  taken += byteLength;
  return POOL.toString("hex", taken - byteLength, taken);
}

function isTimeInput(value: Attributes | TimeInput | undefined): value is TimeInput {
  return typeof value === "number" || value instanceof Date || Array.isArray(value);
}

/** Nanoseconds since 1970 as a decimal text, rounded to microseconds. A number has milliseconds. */
function nanoseconds(time: TimeInput = Date.now()): string {
  if (Array.isArray(time)) return String(BigInt(time[0]) * 1_000_000_000n + BigInt(time[1]));
  return `${Math.round(Number(time) * 1000)}000`;
}

/** Largest number of names whose JSON is kept. Names of models and events are few. */
const MOST_NAMES = 1024;

const names = new Map<string, string>();

/** JSON of a name that occurs often. */
function quoted(name: string): string {
  const known = names.get(name);
  if (known !== undefined) return known;
  const json = JSON.stringify(name);
  if (names.size < MOST_NAMES) names.set(name, json);
  return json;
}

/** The member `attributes` with a comma before it; empty without attributes. */
export function attributesJson(attributes: Readonly<Record<string, AttributeValue | undefined>>): string {
  let json = "";
  for (const key in attributes) {
    const value = attributes[key];
    if (value === undefined || value === null) continue;
    json += `${json === "" ? "" : ","}{"key":${quoted(key)},"value":${valueJson(value)}}`;
  }
  return json === "" ? "" : `,"attributes":[${json}]`;
}

function valueJson(value: unknown): string {
  if (typeof value === "string") return `{"stringValue":${JSON.stringify(value)}}`;
  if (typeof value === "boolean") return `{"boolValue":${value}}`;
  if (typeof value === "number") {
    if (Number.isSafeInteger(value)) return `{"intValue":${value}}`;
    return `{"doubleValue":${Number.isFinite(value) ? value : `"${value}"`}}`;
  }
  if (Array.isArray(value)) return `{"arrayValue":{"values":[${value.map(valueJson).join(",")}]}}`;
  return "{}";
}

const TRACEPARENT = /^(?!ff)([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/;

/** Reads the headers of W3C's trace context. Spans of this server are passed on by their own `traceparent`. */
export const traceContext: TextMapPropagator = {
  inject() {},
  fields: () => ["traceparent", "tracestate"],
  extract(within: Context, carrier: unknown, getter: TextMapGetter): Context {
    const text = (name: string) => {
      const value = getter.get(carrier, name);
      return Array.isArray(value) ? value[0] : value;
    };
    const [, version, traceId, spanId, flags, more] =
      TRACEPARENT.exec(text("traceparent")?.trim() ?? "") ?? [];
    if (traceId === undefined || (version === "00" && more !== undefined)) return within;
    const state = text("tracestate");
    const parent: SpanContext = {
      traceId,
      spanId: spanId!,
      traceFlags: Number.parseInt(flags!, 16) & TraceFlags.SAMPLED,
      isRemote: true,
      ...(state !== undefined && { traceState: createTraceState(state) }),
    };
    return isSpanContextValid(parent) ? trace.setSpanContext(within, parent) : within;
  },
};
