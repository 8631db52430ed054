import { doubleText, floatReader, type Tensor } from "@tritonjs/protocol";
import type { ExpectedOutput } from "../data/data-set.js";

/** Called once for each request that was sent, when it has ended. */
export type EndListener = (request: LoadRequest) => void;

/** Brings requests to one target, in one thread. It opens connections when they are needed. */
export interface LoadCarrier {
  /** Sends a request. The listener may be called before `send` returns. */
  send(request: LoadRequest): void;
  /** Ends a request in flight as failed with this text, and cancels it at the server. */
  cancel(request: LoadRequest, text: string): void;
  /** Ends all requests and connections at once, without calling the listener. */
  close(): void | Promise<void>;
  /** Bytes since the start, protocol overhead included. */
  readonly bytesSent: number;
  readonly bytesReceived: number;
}

/**
 * A request from its slot to its end. A carrier fills in its times and its outcome.
 */
export class LoadRequest {
  payload = 0;
  /** Counts the requests of a thread. */
  readonly number: number;
  sequenceId = 0;
  sequenceStart = false;
  sequenceEnd = false;

  /* Times in milliseconds since the epoch; NaN until they are known. */
  readonly scheduled: number;
  sent = Number.NaN;
  sendEnd = Number.NaN;
  firstResponse = Number.NaN;
  end = Number.NaN;
  responses = 0;
  failure: string | undefined;
  /** True if it was sent more than 1 ms after its slot. */
  isDelayed = false;
  /** True if it failed because it found no connection, or lost it. */
  isConnectionLost = false;

  /* Only where single responses are kept. */
  responseTimes: number[] | undefined;
  responseTokens: number[] | undefined;
  responseOutputs: string[] | undefined;
  inputTokens = 0;

  /** Calls `onPeriod` with this number of responses; 0 for never. */
  period = 0;
  onPeriod: (() => void) | undefined;

  slot: unknown;
  carried: unknown;
  /** Index in the list of requests in flight. */
  place = 0;

  constructor(scheduled: number, number: number, keepsResponses: boolean) {
    this.scheduled = scheduled;
    this.number = number;
    if (!keepsResponses) return;
    this.responseTimes = [];
    this.responseTokens = [];
    this.responseOutputs = [];
  }

  /** Notes that a response with outputs begins to arrive. */
  responded(now: number): void {
    if (this.responses === 0) this.firstResponse = now;
    this.responses++;
    this.responseTimes?.push(now);
    if (this.responses === this.period) this.onPeriod?.();
  }

  fail(text: string): void {
    this.failure ??= text;
  }
}

/** Outputs that responses must have, by payload. */
export type ExpectedOutputs = readonly (readonly ExpectedOutput[] | undefined)[];

/** Reads the outputs of responses, where they are compared or kept. */
export class OutputReader {
  /** @param keeps keeps outputs as JSON text */
  constructor(
    private readonly expected: ExpectedOutputs | undefined,
    private readonly keeps: boolean,
  ) {}

  /** Whether the outputs of a request are needed. */
  wants({ payload }: LoadRequest): boolean {
    return this.keeps || this.expected?.[payload] !== undefined;
  }

  /** @param outputsOf decodes the response. Its errors fail the request. */
  read(request: LoadRequest, outputsOf: () => ReadonlyMap<string, Tensor>): void {
    if (!this.wants(request)) return;
    try {
      const outputs = outputsOf();
      if (this.keeps) request.responseOutputs?.push(outputsJson(outputs));
      const expected = this.expected?.[request.payload];
      const fault = expected && outputFault(expected, outputs);
      if (fault !== undefined) request.fail(fault);
    } catch (cause) {
      request.fail(`cannot read the response: ${(cause as Error).message}`);
    }
  }
}

/** Start of the text of a response with other outputs; perf_analyzer's. */
export const WRONG_OUTPUT = "Output doesn't match expected output";

/** Why outputs differ from the expected ones; undefined if they are equal byte by byte. */
function outputFault(
  expected: readonly ExpectedOutput[],
  outputs: ReadonlyMap<string, Tensor>,
): string | undefined {
  for (const { name, bytes } of expected) {
    const got = outputs.get(name)?.bytes;
    if (got?.length !== bytes.length)
      return `${WRONG_OUTPUT}: '${name}': expected ${bytes.length} bytes, got ${got?.length ?? "no such output"}`;
    if (Buffer.compare(got, bytes) !== 0) return `${WRONG_OUTPUT}: '${name}': its values differ`;
  }
  return undefined;
}

/**
 * Outputs as JSON text for the profile export: a member for each output, an array of its elements, or the element
 * itself if it is the only one.
 */
export function outputsJson(tensors: ReadonlyMap<string, Tensor>): string {
  const members = [...tensors].map(([name, tensor]) => `${JSON.stringify(name)}:${elementsJson(tensor)}`);
  return `{${members.join(",")}}`;
}

function elementsJson({ datatype, elements }: Pick<Tensor, "datatype" | "elements">): string {
  const texts = Array.isArray(elements)
    ? elements.map((bytes) => JSON.stringify(new TextDecoder().decode(bytes)))
    : Array.from(elements as ArrayLike<number | bigint>, (element) => {
        if (datatype === "BOOL") return element ? "true" : "false";
        if (typeof element === "bigint") return String(element);
        const toNumber = floatReader(datatype);
        return toNumber === undefined ? String(element) : doubleText(toNumber(element));
      });
  return texts.length === 1 ? texts[0]! : `[${texts.join(",")}]`;
}

/*
 * Milliseconds since the epoch with fractions. `performance.timeOrigin` is read from the wall clock when a thread
 * starts, so it differs between threads when the wall clock was set in between. Threads therefore agree on the offset
 * between the wall clock and the monotonic clock, which all threads of a process share.
 */

let offset = performance.timeOrigin;

/** Milliseconds since the epoch. Never goes back. */
export const epochNow = (): number => offset + performance.now();

/** Offset of this thread's times from the monotonic clock, for {@link agreeOnTime}. */
export const epochOffset = (): number => epochNow() - monotonicMs();

/** Makes the times of this thread those of the thread that gave the offset. */
export function agreeOnTime(epochOffsetMs: number): void {
  offset = epochOffsetMs + monotonicMs() - performance.now();
}

const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6;
