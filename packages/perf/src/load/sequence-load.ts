import { invalidOption } from "../command/tool-errors.js";
import type { PayloadStream } from "../data/data-set.js";
import type { Random } from "../data/random.js";
import type { LoadRequest } from "../target/carrier.js";
import { shareOf, type ThreadShare } from "./load-level.js";

/** How requests to sequence models form sequences. */
export interface SequenceLoad {
  /** Live sequences in levels that are not of concurrency. @default 4 */
  readonly count?: number;
  /** Requests of a sequence. @default 20, or the steps of its stream where the data has them */
  readonly length?: number;
  /** Percent by which lengths vary around `length`. @default 20 */
  readonly lengthVariationPercent?: number;
  /** First correlation id. @default 1 */
  readonly idStart?: number;
  /** Number of correlation ids, which are used in turn. @default 4294967295 */
  readonly idRange?: number;
  /**
   * Sends a request of a sequence only after the one before has ended, in all levels. @default true where requests have
   * no order on their way: over HTTP, and over gRPC without streams
   */
  readonly serial?: boolean;
}

/** perf_analyzer's defaults. */
export const SEQUENCE_DEFAULTS = {
  count: 4,
  length: 20,
  lengthVariationPercent: 20,
  idStart: 1,
  idRange: 0xffff_ffff,
} as const;

export interface SequenceRules {
  readonly hasGivenSteps: boolean;
  /** Only where the user gave it. */
  readonly length: number | undefined;
  readonly defaultLength: number;
  readonly lengthVariationPercent: number;
  readonly idStart: number;
  readonly idRange: number;
}

export function checkSequenceOptions(options: SequenceLoad): void {
  const whole = (name: string, value: number | undefined, least: number, most = Number.MAX_SAFE_INTEGER) => {
    if (value !== undefined && !(Number.isSafeInteger(value) && value >= least && value <= most))
      throw invalidOption(`${name}: expected a whole number from ${least} to ${most}, got ${value}`);
  };
  whole("--num-of-sequences", options.count, 1);
  whole("--sequence-length", options.length, 1);
  whole("first id of --sequence-id-range", options.idStart, 1, 0xffff_ffff);
  whole("size of --sequence-id-range", options.idRange, 1, 0xffff_ffff);
  const { lengthVariationPercent: variation } = options;
  if (variation !== undefined && !(variation >= 0 && variation <= 100))
    throw invalidOption(`--sequence-length-variation: expected a percentage from 0 to 100, got ${variation}`);
}

/** @throws TritonError INVALID_ARG if live sequences could not all have ids of their own. */
export function checkIdRange(options: SequenceLoad, live: number): void {
  const { idRange = SEQUENCE_DEFAULTS.idRange } = options;
  if (idRange < live)
    throw invalidOption(
      `--sequence-id-range: expected at least ${live} ids, one for each live sequence, got ${idRange}`,
    );
}

export function sequenceRules(
  options: SequenceLoad,
  hasGivenSteps: boolean,
  share: ThreadShare,
): SequenceRules {
  const {
    idStart = SEQUENCE_DEFAULTS.idStart,
    idRange = SEQUENCE_DEFAULTS.idRange,
    lengthVariationPercent = SEQUENCE_DEFAULTS.lengthVariationPercent,
    length: defaultLength = SEQUENCE_DEFAULTS.length,
  } = options;
  return {
    hasGivenSteps,
    length: options.length,
    defaultLength,
    lengthVariationPercent,
    idStart: idStart + Math.floor((idRange * share.index) / share.count),
    idRange: shareOf(idRange, share),
  };
}

/** Chooses what the next request carries. */
export interface RequestSource {
  /**
   * Fills in the payload and the sequence of the next request.
   *
   * @param index of the request among those of all threads
   * @param left requests that may still be sent, with this one
   * @returns false if none can be sent before another one has ended
   */
  next(request: LoadRequest, index: number, left: number): boolean;
  ended(request: LoadRequest): void;
  /** Fills in the last request of an open sequence that has none in flight. False if there is none. */
  last(request: LoadRequest): boolean;
  /** Sets the number of live sequences, and whether each may have only one request in flight. */
  setSequences(live: number, isSerial: boolean): void;
}

export class PlainSource implements RequestSource {
  constructor(private readonly payloads: number) {}

  next(request: LoadRequest, index: number): boolean {
    request.payload = index % this.payloads;
    return true;
  }

  ended(): void {}

  last(): boolean {
    return false;
  }

  setSequences(): void {}
}

interface Sequence {
  readonly id: number;
  readonly stream: PayloadStream;
  readonly offset: number;
  readonly length: number;
  sent: number;
  inFlight: number;
}

/** Carries the steps of sequences: a number of them live at a time, and a new one begins when one ends. */
export class SequenceSource implements RequestSource {
  #ready: Sequence[] = [];
  #open = new Set<Sequence>();
  /** Ids of live sequences. In a serial level, a sequence lives until its last request has ended. */
  readonly #ids = new Set<number>();
  #live = 0;
  #limit = 1;
  #isSerial = true;
  #nextId = 0;

  constructor(
    private readonly streams: readonly PayloadStream[],
    private readonly rules: SequenceRules,
    private readonly random: Random,
  ) {}

  setSequences(live: number, isSerial: boolean): void {
    this.#limit = live;
    this.#isSerial = isSerial;
  }

  next(request: LoadRequest, _index: number, left: number): boolean {
    // Each open sequence needs one more request, so that all of them have ended with the last one.
    // A last request that is still in flight keeps the id of its sequence.
    const hasId = this.#ids.size < this.rules.idRange;
    const mayBegin = this.#live < this.#limit && hasId && left > this.#open.size;
    const sequence = mayBegin ? this.#begin() : this.#ready.shift();
    if (sequence === undefined) return false;
    const mustEnd = left <= this.#open.size || this.#live > this.#limit;
    this.#fill(request, sequence, mustEnd || sequence.sent + 1 === sequence.length);
    return true;
  }

  last(request: LoadRequest): boolean {
    for (const sequence of this.#open) {
      if (sequence.inFlight > 0) continue;
      this.#ready = this.#ready.filter((other) => other !== sequence);
      this.#fill(request, sequence, true);
      return true;
    }
    return false;
  }

  ended(request: LoadRequest): void {
    const sequence = request.slot as Sequence | undefined;
    if (sequence === undefined) return;
    request.slot = undefined;
    sequence.inFlight--;
    if (request.sequenceEnd) this.#ids.delete(sequence.id);
    if (request.sequenceEnd && this.#isSerial) this.#live--;
    if (!request.sequenceEnd && this.#isSerial && this.#open.has(sequence) && !this.#ready.includes(sequence))
      this.#ready.push(sequence);
  }

  #begin(): Sequence {
    const stream = this.streams[this.random.below(this.streams.length)]!;
    const { hasGivenSteps } = this.rules;
    const offset = hasGivenSteps ? 0 : this.random.below(stream.count);
    const sequence = {
      id: this.#freeId(),
      stream,
      offset,
      length: this.#lengthOf(stream),
      sent: 0,
      inFlight: 0,
    };
    this.#ids.add(sequence.id);
    this.#open.add(sequence);
    this.#live++;
    return sequence;
  }

  #fill(request: LoadRequest, sequence: Sequence, isLast: boolean): void {
    const { stream, offset } = sequence;
    request.slot = sequence;
    request.payload = stream.first + ((offset + sequence.sent) % stream.count);
    request.sequenceId = sequence.id;
    request.sequenceStart = sequence.sent === 0;
    request.sequenceEnd = isLast;
    sequence.sent++;
    sequence.inFlight++;
    if (isLast) {
      this.#open.delete(sequence);
      if (!this.#isSerial) this.#live--;
    } else if (!this.#isSerial) this.#ready.push(sequence);
  }

  #lengthOf(stream: PayloadStream): number {
    const { hasGivenSteps, length, lengthVariationPercent } = this.rules;
    if (hasGivenSteps && length === undefined) return stream.count;
    const base = length ?? this.rules.defaultLength;
    const variation = (2 * this.random.uniform() - 1) * (lengthVariationPercent / 100) * base;
    return Math.max(1, base + Math.trunc(variation));
  }

  #freeId(): number {
    const { idStart, idRange } = this.rules;
    for (;;) {
      const id = idStart + (this.#nextId++ % idRange);
      if (!this.#ids.has(id)) return id;
    }
  }
}
