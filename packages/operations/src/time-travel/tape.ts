import type { SchedulingSettings } from "@tritonjs/core/extension";
import { TritonError } from "@tritonjs/protocol";

/**
 * Kinds of entries. Each entry is a row of numbers: its length, its kind, the model, the time, then fields.
 *
 * Steps begin with something outside of the scheduler: an arrival, a timer, the end of a batch. All else follows from
 * them. Readings are what the scheduler read within a step: the time and the room of instances, where they have changed.
 * Outcomes are what a replay must lead to again.
 */
export const ENTRY = {
  // Steps.
  arrive: 1,
  timer: 2,
  defer: 3,
  ended: 4,
  room: 5,
  health: 6,
  cancel: 7,
  released: 8,
  settled: 9,
  stop: 10,
  failQueued: 11,
  loaded: 12,
  join: 13,
  retire: 14,
  closing: 15,
  // Readings.
  time: 16,
  value: 17,
  // Outcomes.
  batch: 18,
  refused: 19,
  late: 20,
  full: 21,
  // First entry of a part of a ring: BEGIN, then CLOCK for each model.
  begin: 22,
} as const;

/** Fields of `begin`: whether a replay may begin there, and the numbers of the next request and batch. */
export const BEGIN = { replayable: 0, request: 1, batch: 2 } as const;

/** Fields of `begin` for each clock: whether its model is loaded, and how many timers and deferred calls it has had. */
export const CLOCK = { loaded: 0, timers: 1, deferred: 2 } as const;

/** Position of the fields of a model's clock in `begin`. */
export const clockField = (clock: number) => 3 + 3 * clock;

/** Numbers before the fields of an entry. */
const HEAD = 4;

/** Fields of an arrival, in their order. */
export const ARRIVAL = {
  seq: 0,
  flags: 1,
  queueStart: 2,
  batchSize: 3,
  priority: 4,
  timeoutMicroseconds: 5,
  deadline: 6,
  limitMs: 7,
  maxTokens: 8,
  id: 9,
  caller: 10,
  correlationId: 11,
  inputs: 12,
  batchKey: 13,
  cost: 14,
  parent: 15,
} as const;

export const ARRIVAL_FIELDS = 16;

/** Fields of entries that are numbers of texts. */
const TEXTS: ReadonlyMap<number, readonly number[]> = new Map([
  [ENTRY.arrive, [ARRIVAL.id, ARRIVAL.caller, ARRIVAL.correlationId, ARRIVAL.inputs, ARRIVAL.batchKey]],
  [ENTRY.health, [2, 3]],
  [ENTRY.cancel, [1, 2]],
  [ENTRY.settled, [1]],
  [ENTRY.failQueued, [0, 1]],
  [ENTRY.join, [2]],
  [ENTRY.batch, [2]],
  [ENTRY.refused, [1]],
  [ENTRY.late, [1]],
]);

export const ARRIVAL_FLAG = { start: 1, end: 2, partOfWork: 4, moved: 8, textId: 16 } as const;

/** A model as a recording describes it. */
export interface RecordedModel {
  readonly name: string;
  readonly version: number;
  /** Configuration with everything that decides about batches. */
  readonly config: object;
  readonly instances: readonly string[];
  readonly mixedInputs: boolean;
  readonly batchesByKey: boolean;
  readonly maxBatchCost: number | null;
  readonly padded: readonly string[] | null;
  /** Name of its batcher; null for Triton's. */
  readonly batcher: string | null;
}

/** What a recording says before its entries. */
export interface TapeHeader {
  readonly format: "tritonjs-scheduling";
  readonly formatVersion: 1;
  /** Version of the library that recorded: another one may decide otherwise. */
  readonly library: string;
  /** Wall time of its first entry, in milliseconds since 1970. */
  beganAt: number;
  readonly cores: number;
  readonly server: SchedulingSettings;
  readonly models: readonly RecordedModel[];
  readonly strings: readonly string[];
  /** Number of numbers that follow. */
  readonly length: number;
}

const CHUNK = 1 << 15;
const FORMAT = "tritonjs-scheduling";

/** The entries of a recording, in chunks of numbers, and its texts. */
export class Tape {
  readonly #chunks: Float64Array[] = [];
  readonly #strings: string[] = [""];
  readonly #ids = new Map<string, number>([["", 0]]);
  length = 0;
  #textBytes = 0;

  constructor(
    readonly about: Omit<TapeHeader, "format" | "formatVersion" | "models" | "strings" | "length">,
    readonly models: RecordedModel[] = [],
  ) {}

  /** Size of the entries and texts in memory. */
  get byteLength(): number {
    return this.length * 8 + this.#textBytes;
  }

  at(index: number): number {
    return this.#chunks[Math.floor(index / CHUNK)]![index % CHUNK]!;
  }

  set(index: number, value: number): void {
    this.#chunks[Math.floor(index / CHUNK)]![index % CHUNK] = value;
  }

  push(value: number): void {
    const at = this.length++;
    const offset = at % CHUNK;
    if (offset === 0) this.#chunks.push(new Float64Array(CHUNK));
    this.#chunks[this.#chunks.length - 1]![offset] = value;
  }

  /** Begins an entry with a number of fields, which are to be pushed. @returns index of its first field */
  entry(kind: number, model: number, time: number, fields: number): number {
    this.push(HEAD + fields);
    this.push(kind);
    this.push(model);
    this.push(time);
    return this.length;
  }

  text(value: string): number {
    let id = this.#ids.get(value);
    if (id === undefined) {
      id = this.#strings.length;
      this.#strings.push(value);
      this.#ids.set(value, id);
      this.#textBytes += 2 * value.length;
    }
    return id;
  }

  textOf(id: number): string {
    return this.#strings[id] ?? "";
  }

  /** Adds the entries of a tape with the same models. */
  append(other: Tape): void {
    for (let at = 0; at < other.length; at += other.at(at)) {
      const first = this.length + HEAD;
      for (let i = 0; i < other.at(at); i++) this.push(other.at(at + i));
      for (const field of TEXTS.get(other.at(at + 1)) ?? []) {
        this.set(first + field, this.text(other.textOf(this.at(first + field))));
      }
    }
  }

  /** The recording as bytes: a line of JSON, then the numbers, each 8 bytes, little-endian. */
  bytes(): Uint8Array {
    const header: TapeHeader = {
      format: FORMAT,
      formatVersion: 1,
      ...this.about,
      models: this.models,
      strings: this.#strings,
      length: this.length,
    };
    const line = new TextEncoder().encode(`${JSON.stringify(header)}\n`);
    const bytes = new Uint8Array(line.length + 8 * this.length);
    bytes.set(line);
    const view = new DataView(bytes.buffer);
    for (let i = 0; i < this.length; i++) view.setFloat64(line.length + 8 * i, this.at(i), true);
    return bytes;
  }

  async save(file: string): Promise<void> {
    const { writeFile } = await import("node:fs/promises");
    // Names of callers are in it, so only the owner may read it.
    await writeFile(file, this.bytes(), { mode: 0o600 });
  }

  /** @throws TritonError INVALID_ARG for bytes that are not a recording of the scheduling */
  static from(bytes: Uint8Array, name = "the recording"): Tape {
    const end = bytes.indexOf(10);
    const header = headerOf(bytes.subarray(0, Math.max(0, end)), name);
    const start = end + 1;
    const expected = header.length * 8;
    if (bytes.length - start !== expected) {
      throw fault(name, `${expected} bytes of entries`, `${bytes.length - start}`);
    }
    const tape = new Tape(header, [...header.models]);
    for (const text of header.strings) tape.text(text);
    const view = new DataView(bytes.buffer, bytes.byteOffset + start, expected);
    for (let i = 0; i < header.length; i++) tape.push(view.getFloat64(8 * i, true));
    tape.#check(name);
    return tape;
  }

  /** @throws TritonError INVALID_ARG for a file that is not a recording of the scheduling, or cannot be read */
  static async read(file: string): Promise<Tape> {
    let bytes: Uint8Array;
    try {
      const { readFile } = await import("node:fs/promises");
      bytes = await readFile(file);
    } catch (error) {
      throw new TritonError("INVALID_ARG", `cannot read the recording: ${(error as Error).message}`);
    }
    return Tape.from(bytes, `'${file}'`);
  }

  /** Checks that entries are whole and name models that exist, so that a damaged file cannot mislead a reader. */
  #check(name: string): void {
    for (let at = 0; at < this.length; ) {
      const [length, model] = [this.at(at), this.at(at + 2)];
      const isWhole = Number.isInteger(length) && length >= HEAD && at + length <= this.length;
      const knowsModel = Number.isInteger(model) && model >= -1 && model < this.models.length;
      if (!isWhole || !knowsModel) throw fault(name, "whole entries", `a damaged one at ${at}`);
      at += length;
    }
  }
}

function headerOf(line: Uint8Array, name: string): TapeHeader {
  let header: Partial<TapeHeader> = {};
  try {
    header = JSON.parse(new TextDecoder().decode(line)) as Partial<TapeHeader>;
  } catch {
    // Not JSON: refused below.
  }
  const { format, formatVersion, models, strings, length } = header ?? {};
  if (format !== FORMAT) throw fault(name, `a file that begins with {"format":"${FORMAT}"`, "another one");
  if (formatVersion !== 1) throw fault(name, "format version 1", String(formatVersion));
  if (!Array.isArray(models) || !Array.isArray(strings) || !Number.isSafeInteger(length)) {
    throw fault(name, "models, strings and length in its first line", "others");
  }
  return header as TapeHeader;
}

function fault(name: string, expected: string, got: string): TritonError {
  return new TritonError(
    "INVALID_ARG",
    `${name} is not a recording of the scheduling: expected ${expected}, got ${got}`,
  );
}

/** Reads the entries of a tape one after the other. */
export class TapeReader {
  at = 0;

  constructor(readonly tape: Tape) {}

  get done(): boolean {
    return this.at >= this.tape.length;
  }

  get kind(): number {
    return this.done ? 0 : this.tape.at(this.at + 1);
  }

  get model(): number {
    return this.tape.at(this.at + 2);
  }

  get time(): number {
    return this.tape.at(this.at + 3);
  }

  get fields(): number {
    return this.tape.at(this.at) - HEAD;
  }

  field(index: number): number {
    return this.tape.at(this.at + HEAD + index);
  }

  next(): void {
    this.at += this.tape.at(this.at);
  }
}
