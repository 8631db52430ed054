import { invalidOption } from "../data/invalid-option.js";
import { shareOf, type ThreadShare } from "./concurrency-target.js";

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

/** What one thread needs of the options: its own range of ids. */
export interface SequenceRules {
  readonly hasGivenSteps: boolean;
  /** Only where the user gave it. */
  readonly length: number | undefined;
  readonly defaultLength: number;
  readonly lengthVariationPercent: number;
  readonly idStart: number;
  readonly idRange: number;
}

/** @throws TritonError INVALID_ARG for an option out of its range. */
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

/** The rules for one thread. */
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
