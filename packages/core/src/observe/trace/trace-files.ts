import { appendFile, writeFile } from "node:fs/promises";
import { statusText } from "@tritonjs/protocol";
import type { Log } from "../log/log.js";
import { TensorActivity } from "./tensor-activity.js";
import type { Trace } from "./trace.js";

/** Number of characters in one write. */
const CHUNK = 64 * 1024;
/**
 * Largest number of bytes that wait to be written. If the disk is too slow, traces are lost, and the server's memory
 * stays bounded.
 */
export const MAX_WAITING_BYTES = 64 * 1024 * 1024;

/** A file of traces: one JSON array, written piece by piece. */
export interface TraceOutput {
  write(traces: readonly Trace[]): void;
  /** Ends the array. No traces follow. */
  end(): void;
}

/** The file, or the numbered files, of a server's traces. Only `close` waits for the disk. */
export class TraceFiles {
  readonly #path: string;
  readonly #log: Pick<Log, "error">;
  #waitingBytes = 0;
  #dropped = 0;
  #index = 0;
  #closed = false;
  #plain: Output | undefined;
  /** The end of a chain of writes: each starts after the one before. */
  #last: Promise<void> = Promise.resolve();

  constructor(path: string, log: Pick<Log, "error">) {
    this.#path = path;
    this.#log = log;
  }

  /** The file without a number, which `close` ends. */
  get plain(): TraceOutput {
    this.#plain ??= this.#open(this.#path);
    return this.#plain;
  }

  /** Opens another numbered file. */
  numbered(): TraceOutput {
    return this.#open(`${this.#path}.${this.#index++}`);
  }

  /** Ends the file. Resolves when everything is written. */
  async close(): Promise<void> {
    this.#plain?.end();
    this.#closed = true;
    await this.#last;
  }

  #open(path: string): Output {
    return new Output(path, {
      accepts: (byteSize, traces) => this.#accepts(byteSize, traces),
      enqueue: (byteSize, work) => {
        this.#waitingBytes += byteSize;
        this.#last = this.#last.then(work).then(
          () => this.#done(byteSize),
          (error: unknown) => {
            this.#done(byteSize);
            this.#log.error(`failed creating trace file: ${statusText(error)}`);
          },
        );
      },
    });
  }

  #done(byteSize: number): void {
    this.#waitingBytes -= byteSize;
    if (this.#waitingBytes > 0 || this.#dropped === 0) return;
    this.#log.error(`${this.#dropped} traces were lost: writing '${this.#path}' is slower than tracing`);
    this.#dropped = 0;
  }

  #accepts(byteSize: number, traces: number): boolean {
    if (this.#closed) return false;
    const accepts = this.#waitingBytes === 0 || this.#waitingBytes + byteSize <= MAX_WAITING_BYTES;
    if (!accepts) this.#dropped += traces;
    return accepts;
  }
}

/** Operations that coordinate outputs which share the disk. */
interface Turns {
  accepts(byteSize: number, traces: number): boolean;
  enqueue(byteSize: number, work: () => Promise<void>): void;
}

class Output implements TraceOutput {
  /** True once a part of the output is on disk. */
  #begun = false;
  #any = false;
  #broken = false;

  constructor(
    private readonly path: string,
    private readonly turns: Turns,
  ) {}

  write(traces: readonly Trace[]): void {
    const byteSize = traces.reduce((sum, trace) => sum + trace.byteSize, 0);
    if (byteSize === 0 || !this.turns.accepts(byteSize, traces.length)) return;
    const opening = this.#any ? "," : "[";
    this.#any = true;
    this.turns.enqueue(byteSize, () => this.#append(jsonOf(traces, opening)));
  }

  end(): void {
    if (this.#any) this.turns.enqueue(0, () => this.#append(["]"]));
  }

  async #append(pieces: Iterable<string>): Promise<void> {
    if (this.#broken) return;
    try {
      for (const chunk of chunksOf(pieces)) {
        await (this.#begun ? appendFile : writeFile)(this.path, chunk);
        this.#begun = true;
      }
    } catch (error) {
      this.#broken = true;
      throw error;
    }
  }
}

function* jsonOf(traces: readonly Trace[], opening: string): Generator<string> {
  let before = opening;
  for (const { entries } of traces) {
    for (const entry of entries) {
      yield before;
      if (entry instanceof TensorActivity) yield* entry.pieces();
      else yield JSON.stringify(entry);
      before = ",";
    }
  }
}

/** Joins pieces into chunks that are large enough for a write each. */
function* chunksOf(pieces: Iterable<string>): Generator<string> {
  let chunk = "";
  for (const piece of pieces) {
    chunk += piece;
    if (chunk.length < CHUNK) continue;
    yield chunk;
    chunk = "";
  }
  if (chunk !== "") yield chunk;
}
