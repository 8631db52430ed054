import type { LoadRequest } from "../target/load-request.js";
import type { KeptResponses, RequestRecords } from "./request-records.js";

/** Different texts of errors that a window tells apart. Texts with numbers in them could be without end. */
const MOST_ERRORS = 100;
const OTHER_ERRORS = "other errors (the window has too many different ones)";

/** Which parts of single responses are kept. */
export interface KeptParts {
  readonly responses: boolean;
  readonly outputs: boolean;
  readonly tokens: boolean;
}

/** Collects finished requests in columns. */
export class RecordColumns {
  readonly #kept: KeptParts;
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

  constructor(kept: KeptParts) {
    this.#kept = kept;
  }

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
    if (this.#kept.responses) this.#keep(request);
  }

  /** Moves the records out. */
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
      kept: this.#kept.responses ? this.#takeKept() : undefined,
    };
    this.#count = 0;
    this.#errors.clear();
    return records;
  }

  #keep({ responseTimes, responseTokens, responseOutputs, inputTokens }: LoadRequest): void {
    const times = responseTimes ?? [];
    for (let i = 0; i < times.length; i++) {
      this.#times.push(times[i]!);
      if (this.#kept.tokens) this.#tokens.push(responseTokens?.[i] ?? 0);
      if (this.#kept.outputs) this.#outputs.push(responseOutputs?.[i] ?? "{}");
    }
    this.#offsets.push(this.#times.length);
    if (this.#kept.tokens) this.#inputTokens.push(inputTokens);
  }

  #takeKept(): KeptResponses {
    const kept: KeptResponses = {
      offsets: Uint32Array.from(this.#offsets),
      times: Float64Array.from(this.#times),
      tokens: this.#kept.tokens ? Uint32Array.from(this.#tokens) : undefined,
      inputTokens: this.#kept.tokens ? Uint32Array.from(this.#inputTokens) : undefined,
      outputs: this.#kept.outputs ? this.#outputs : undefined,
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
    const longer = <T extends Float64Array | Uint32Array | Uint16Array>(column: T): T => {
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
