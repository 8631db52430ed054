import type { PayloadStream } from "../data/data-set.js";
import type { Random } from "../data/random.js";
import type { LoadRequest } from "../target/load-request.js";
import type { RequestSource } from "./request-source.js";
import type { SequenceRules } from "./sequence-load.js";

/** A sequence that has begun. */
interface Sequence {
  readonly id: number;
  readonly stream: PayloadStream;
  /** Step of the stream that its first request carries. */
  readonly offset: number;
  readonly length: number;
  sent: number;
  inFlight: number;
}

/** Carries the steps of sequences: a number of them live at a time, and a new one begins when one ends. */
export class SequenceSource implements RequestSource {
  readonly #streams: readonly PayloadStream[];
  readonly #rules: SequenceRules;
  readonly #random: Random;
  /** Sequences whose next request may be sent, in turn. */
  #ready: Sequence[] = [];
  /** Sequences with a request to come. */
  #open = new Set<Sequence>();
  /** Ids of live sequences. In a serial level, a sequence lives until its last request has ended. */
  readonly #ids = new Set<number>();
  #live = 0;
  #limit = 1;
  #isSerial = true;
  #nextId = 0;

  constructor(streams: readonly PayloadStream[], rules: SequenceRules, random: Random) {
    this.#streams = streams;
    this.#rules = rules;
    this.#random = random;
  }

  setSequences(live: number, isSerial: boolean): void {
    this.#limit = live;
    this.#isSerial = isSerial;
  }

  next(request: LoadRequest, _index: number, left: number): boolean {
    // Each open sequence needs one more request, so that all of them have ended with the last one.
    // A last request that is still in flight keeps the id of its sequence.
    const hasId = this.#ids.size < this.#rules.idRange;
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
    const stream = this.#streams[this.#random.below(this.#streams.length)]!;
    const { hasGivenSteps } = this.#rules;
    const offset = hasGivenSteps ? 0 : this.#random.below(stream.count);
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
    const { hasGivenSteps, length, lengthVariationPercent } = this.#rules;
    if (hasGivenSteps && length === undefined) return stream.count;
    const base = length ?? this.#rules.defaultLength;
    const variation = (2 * this.#random.uniform() - 1) * (lengthVariationPercent / 100) * base;
    return Math.max(1, base + Math.trunc(variation));
  }

  /** Ids in turn, without those of live sequences. */
  #freeId(): number {
    const { idStart, idRange } = this.#rules;
    for (;;) {
      const id = idStart + (this.#nextId++ % idRange);
      if (!this.#ids.has(id)) return id;
    }
  }
}
