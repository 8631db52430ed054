import type { LoadRequest } from "../target/carrier.js";

/**
 * Finished requests in columns: index `i` of each column belongs to one request. Times are milliseconds since the
 * epoch with fractions (`performance.timeOrigin + performance.now()`), so that threads and processes agree.
 */
export interface RequestRecords {
  readonly count: number;
  /** When the schedule wanted the request to be sent. Equal to `sent` in concurrency mode. */
  readonly scheduled: Float64Array;
  /** When the request was handed to the connection. */
  readonly sent: Float64Array;
  /** When the last byte of the request was accepted by the connection. */
  readonly sendEnd: Float64Array;
  /** When the first response with outputs began to arrive. NaN where there was none. */
  readonly firstResponse: Float64Array;
  /** When the last response with outputs was complete, or the error arrived. */
  readonly end: Float64Array;
  /** Responses with outputs. */
  readonly responses: Uint32Array;
  /** 0 for a success, else 1 + the index of the text in `errors`. */
  readonly failure: Uint16Array;
  /** Texts of the failures in these records. */
  readonly errors: readonly string[];
  /** Correlation id of the sequence; 0 without one. */
  readonly sequence: Float64Array;
  /** Index of the payload that the request carried, in the data set. */
  readonly payload: Uint32Array;
  /** Only where `keepResponses` was asked for. */
  readonly kept?: KeptResponses;
}

/** Times and texts of single responses. Responses of request `i` are those from `offsets[i]` to `offsets[i + 1]`. */
export interface KeptResponses {
  readonly offsets: Uint32Array;
  readonly times: Float64Array;
  /** Output tokens in each response; counted from the text, or told by the server. OpenAI targets only. */
  readonly tokens?: Uint32Array;
  /** Input tokens of each request. OpenAI targets only. */
  readonly inputTokens?: Uint32Array;
  /** Outputs of each response as JSON text, for the profile export. Only where `keepOutputs` was asked for. */
  readonly outputs?: readonly string[];
}

/** Resources that the generator itself used in a window: it must not be the bottleneck. */
export interface GeneratorUsage {
  /** CPU time of all generator threads in milliseconds, without the wait for the slots of a schedule. */
  readonly cpuMs: number;
  /** CPU time of the busiest thread as a share of the window, without that wait, 0 to 1. */
  readonly cpuUtilization: number;
  /** Event-loop utilisation of the busiest thread, without that wait, 0 to 1. */
  readonly eventLoopUtilization: number;
  /** Requests that ended, and were sent more than 1 ms after their slot; without those that found no connection. */
  readonly delayed: number;
  /** Mean share of time in which no request of a thread waited for the thread, 0 to 1. */
  readonly idle: number;
  /** Bytes of requests and responses, protocol overhead included. */
  readonly bytesSent: number;
  readonly bytesReceived: number;
}

/** The requests that ended between two calls of `take()`. */
export interface LoadWindow {
  /** Milliseconds since the epoch. A window begins where the last one ended. */
  readonly start: number;
  readonly end: number;
  readonly records: RequestRecords;
  readonly usage: GeneratorUsage;
}

/** Different texts of errors that a window tells apart. Texts with numbers in them could be without end. */
const MOST_ERRORS = 100;
const OTHER_ERRORS = "other errors (the window has too many different ones)";

/** Which parts of the responses to a request are recorded. */
export interface ResponseRecording {
  readonly responses: boolean;
  readonly outputs: boolean;
  readonly tokens: boolean;
}

type Column = Float64Array | Uint32Array | Uint16Array;

/** The columns that every record has. */
const COLUMNS = {
  scheduled: Float64Array,
  sent: Float64Array,
  sendEnd: Float64Array,
  firstResponse: Float64Array,
  end: Float64Array,
  responses: Uint32Array,
  failure: Uint16Array,
  sequence: Float64Array,
  payload: Uint32Array,
} as const;

type ColumnName = keyof typeof COLUMNS;
type Columns = { readonly [Name in ColumnName]: InstanceType<(typeof COLUMNS)[Name]> };

const eachColumn = (columnOf: (name: ColumnName) => Column): Columns =>
  Object.fromEntries((Object.keys(COLUMNS) as ColumnName[]).map((name) => [name, columnOf(name)])) as never;

/** Collects finished requests in columns. */
export class RecordColumns {
  #count = 0;
  #columns = eachColumn((name) => new COLUMNS[name](1024));
  #errors = new Map<string, number>();
  #offsets: number[] = [0];
  #times: number[] = [];
  #tokens: number[] = [];
  #inputTokens: number[] = [];
  #outputs: string[] = [];

  constructor(private readonly kept: ResponseRecording) {}

  add(request: LoadRequest): void {
    const i = this.#count++;
    if (i === this.#columns.end.length)
      this.#columns = eachColumn((name) => joined([this.#columns[name], new COLUMNS[name](i)]));
    const columns = this.#columns;
    columns.scheduled[i] = request.scheduled;
    columns.sent[i] = request.sent;
    // A server may answer before it has read the request.
    columns.sendEnd[i] = Number.isNaN(request.sendEnd) ? request.sent : request.sendEnd;
    columns.firstResponse[i] = request.firstResponse;
    columns.end[i] = request.end;
    columns.responses[i] = request.responses;
    columns.failure[i] = request.failure === undefined ? 0 : 1 + this.#errorIndex(request.failure);
    columns.sequence[i] = request.sequenceId;
    columns.payload[i] = request.payload;
    if (this.kept.responses) this.#keep(request);
  }

  /** Moves the records out. */
  take(): RequestRecords {
    const count = this.#count;
    const columns = eachColumn((name) => this.#columns[name].slice(0, count));
    const errors = [...this.#errors.keys()];
    this.#count = 0;
    this.#errors.clear();
    return { count, ...columns, errors, kept: this.kept.responses ? this.#takeKept() : undefined };
  }

  #keep({ responseTimes = [], responseTokens, responseOutputs, inputTokens }: LoadRequest): void {
    responseTimes.forEach((time, i) => {
      this.#times.push(time);
      if (this.kept.tokens) this.#tokens.push(responseTokens?.[i] ?? 0);
      if (this.kept.outputs) this.#outputs.push(responseOutputs?.[i] ?? "{}");
    });
    this.#offsets.push(this.#times.length);
    if (this.kept.tokens) this.#inputTokens.push(inputTokens);
  }

  #takeKept(): KeptResponses {
    const { tokens, outputs } = this.kept;
    const kept: KeptResponses = {
      offsets: Uint32Array.from(this.#offsets),
      times: Float64Array.from(this.#times),
      tokens: tokens ? Uint32Array.from(this.#tokens) : undefined,
      inputTokens: tokens ? Uint32Array.from(this.#inputTokens) : undefined,
      outputs: outputs ? this.#outputs : undefined,
    };
    this.#offsets = [0];
    this.#outputs = [];
    for (const list of [this.#times, this.#tokens, this.#inputTokens]) list.length = 0;
    return kept;
  }

  #errorIndex(text: string): number {
    const known = this.#errors.get(text);
    if (known !== undefined) return known;
    const name = this.#errors.size < MOST_ERRORS ? text : OTHER_ERRORS;
    const index = this.#errors.get(name) ?? this.#errors.size;
    this.#errors.set(name, index);
    return index;
  }
}

/** Buffers of records, which move to another thread without a copy. */
export function transferOf({ kept, ...columns }: RequestRecords): ArrayBuffer[] {
  return [...Object.values(columns), ...Object.values(kept ?? {})]
    .filter((column) => ArrayBuffer.isView(column))
    .map((column) => column.buffer as ArrayBuffer);
}

export function joinedRecords(parts: readonly RequestRecords[]): RequestRecords {
  if (parts.length === 1) return parts[0]!;
  const errors = [...new Set(parts.flatMap((part) => part.errors))];
  const failures = (part: RequestRecords) =>
    part.failure.map((failure) => (failure === 0 ? 0 : 1 + errors.indexOf(part.errors[failure - 1]!)));
  return {
    count: parts.reduce((sum, part) => sum + part.count, 0),
    ...eachColumn((name) => joined(parts.map((part) => (name === "failure" ? failures(part) : part[name])))),
    errors,
    kept: joinedResponses(parts.flatMap(({ kept }) => kept ?? [])),
  };
}

function joinedResponses(parts: readonly KeptResponses[]): KeptResponses | undefined {
  const [first] = parts;
  if (first === undefined) return undefined;
  const offsets = new Uint32Array(parts.reduce((sum, part) => sum + part.offsets.length - 1, 1));
  let requests = 0;
  let responses = 0;
  for (const part of parts) {
    for (let i = 0; i < part.offsets.length; i++) offsets[requests + i] = responses + part.offsets[i]!;
    requests += part.offsets.length - 1;
    responses += part.times.length;
  }
  return {
    offsets,
    times: joined(parts.map((part) => part.times)),
    tokens: first.tokens && joined(parts.map((part) => part.tokens!)),
    inputTokens: first.inputTokens && joined(parts.map((part) => part.inputTokens!)),
    outputs: first.outputs && parts.flatMap((part) => part.outputs!),
  };
}

function joined<T extends Column>(columns: readonly T[]): T {
  const length = columns.reduce((sum, column) => sum + column.length, 0);
  const whole = new (columns[0]!.constructor as new (length: number) => T)(length);
  let at = 0;
  for (const column of columns) {
    whole.set(column, at);
    at += column.length;
  }
  return whole;
}
