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

export interface KeptParts {
  readonly responses: boolean;
  readonly outputs: boolean;
  readonly tokens: boolean;
}

export class RecordColumns {
  #count = 0;
  #scheduled = new Float64Array(1024);
  #sent = new Float64Array(1024);
  #sendEnd = new Float64Array(1024);
  #firstResponse = new Float64Array(1024);
  #end = new Float64Array(1024);
  #responses = new Uint32Array(1024);
  #failure = new Uint16Array(1024);
  #sequence = new Float64Array(1024);
  #payload = new Uint32Array(1024);
  #errors = new Map<string, number>();
  #offsets: number[] = [0];
  #times: number[] = [];
  #tokens: number[] = [];
  #inputTokens: number[] = [];
  #outputs: string[] = [];

  constructor(private readonly kept: KeptParts) {}

  add(request: LoadRequest): void {
    const i = this.#count++;
    if (i === this.#end.length) this.#grow();
    this.#scheduled[i] = request.scheduled;
    this.#sent[i] = request.sent;
    // A server may answer before it has read the request.
    this.#sendEnd[i] = Number.isNaN(request.sendEnd) ? request.sent : request.sendEnd;
    this.#firstResponse[i] = request.firstResponse;
    this.#end[i] = request.end;
    this.#responses[i] = request.responses;
    this.#failure[i] = request.failure === undefined ? 0 : 1 + this.#errorIndex(request.failure);
    this.#sequence[i] = request.sequenceId;
    this.#payload[i] = request.payload;
    if (this.kept.responses) this.#keep(request);
  }

  take(): RequestRecords {
    const count = this.#count;
    const records: RequestRecords = {
      count,
      scheduled: this.#scheduled.slice(0, count),
      sent: this.#sent.slice(0, count),
      sendEnd: this.#sendEnd.slice(0, count),
      firstResponse: this.#firstResponse.slice(0, count),
      end: this.#end.slice(0, count),
      responses: this.#responses.slice(0, count),
      failure: this.#failure.slice(0, count),
      errors: [...this.#errors.keys()],
      sequence: this.#sequence.slice(0, count),
      payload: this.#payload.slice(0, count),
      kept: this.kept.responses ? this.#takeKept() : undefined,
    };
    this.#count = 0;
    this.#errors.clear();
    return records;
  }

  #keep({ responseTimes, responseTokens, responseOutputs, inputTokens }: LoadRequest): void {
    const times = responseTimes ?? [];
    for (let i = 0; i < times.length; i++) {
      this.#times.push(times[i]!);
      if (this.kept.tokens) this.#tokens.push(responseTokens?.[i] ?? 0);
      if (this.kept.outputs) this.#outputs.push(responseOutputs?.[i] ?? "{}");
    }
    this.#offsets.push(this.#times.length);
    if (this.kept.tokens) this.#inputTokens.push(inputTokens);
  }

  #takeKept(): KeptResponses {
    const kept: KeptResponses = {
      offsets: Uint32Array.from(this.#offsets),
      times: Float64Array.from(this.#times),
      tokens: this.kept.tokens ? Uint32Array.from(this.#tokens) : undefined,
      inputTokens: this.kept.tokens ? Uint32Array.from(this.#inputTokens) : undefined,
      outputs: this.kept.outputs ? this.#outputs : undefined,
    };
    this.#offsets = [0];
    this.#times = [];
    this.#tokens = [];
    this.#inputTokens = [];
    this.#outputs = [];
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

  #grow(): void {
    const longer = <T extends Column>(column: T): T => {
      const grown = new (column.constructor as new (length: number) => T)(2 * column.length);
      grown.set(column);
      return grown;
    };
    this.#scheduled = longer(this.#scheduled);
    this.#sent = longer(this.#sent);
    this.#sendEnd = longer(this.#sendEnd);
    this.#firstResponse = longer(this.#firstResponse);
    this.#end = longer(this.#end);
    this.#responses = longer(this.#responses);
    this.#failure = longer(this.#failure);
    this.#sequence = longer(this.#sequence);
    this.#payload = longer(this.#payload);
  }
}

/** Buffers of records, which move to another thread without a copy. */
export function transferOf(records: RequestRecords): ArrayBuffer[] {
  const { kept, ...columns } = records;
  return [...Object.values(columns), ...Object.values(kept ?? {})]
    .filter((column) => ArrayBuffer.isView(column))
    .map((column) => column.buffer as ArrayBuffer);
}

type Column = Float64Array | Uint32Array | Uint16Array;

/** The records of several threads, one thread after the other. */
export function joinedRecords(parts: readonly RequestRecords[]): RequestRecords {
  if (parts.length === 1) return parts[0]!;
  const errors = [...new Set(parts.flatMap((part) => part.errors))];
  const of = <T extends Column>(column: (part: RequestRecords) => T): T => joined(parts.map(column));
  return {
    count: parts.reduce((sum, part) => sum + part.count, 0),
    scheduled: of((part) => part.scheduled),
    sent: of((part) => part.sent),
    sendEnd: of((part) => part.sendEnd),
    firstResponse: of((part) => part.firstResponse),
    end: of((part) => part.end),
    responses: of((part) => part.responses),
    failure: of((part) =>
      part.failure.map((failure) => (failure === 0 ? 0 : 1 + errors.indexOf(part.errors[failure - 1]!))),
    ),
    errors,
    sequence: of((part) => part.sequence),
    payload: of((part) => part.payload),
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
