import type { ExpectedOutput, FreshRange } from "./data-set.js";

/** A tensor of one row: its shape is without the batch axis. */
export interface StepTensor {
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
  readonly fresh?: FreshRange;
}

/** The data of one row. A request of `b` rows takes `b` steps in a row. */
export interface Step {
  readonly inputs: ReadonlyMap<string, StepTensor>;
  readonly expected?: readonly ExpectedOutput[];
  readonly timestampMs?: number;
  /** Place in the input, for messages: `data.json: entry 3`. */
  readonly where: string;
}

/** The rows of a data set. */
export interface Steps {
  /** Each list is the stream of a sequence. Models without sequences take the streams one after the other. */
  readonly streams: readonly (readonly Step[])[];
  /** False for generated data. */
  readonly areGiven: boolean;
}
