import type { NdArray } from "ndarray";
import { keyList } from "../schema/key-list.js";

/** What requests are grouped by. */
export type BatchKey = string | number | bigint | boolean;

/** A request as `batchBy` and `cost` see it, when it comes. */
export interface BatchingRequest {
  /** Id that the client gave, or an empty string. */
  readonly id: string;
  readonly parameters: Readonly<Record<string, string | number | bigint | boolean>>;
  readonly priority: number;
  /** Time that the client allows in the queue, 0 for any. */
  readonly queueTimeoutMicroseconds: number;
  /** Outputs that the client asked for; empty for all. */
  readonly requestedOutputs: readonly string[];
  readonly correlationId: bigint | string | undefined;
  readonly sequenceStart: boolean;
  readonly sequenceEnd: boolean;
  /** Rows along the batch axis; 0 for a model without one. */
  readonly batchSize: number;
  /** The tensors, with the batch axis. To be read only. */
  readonly inputs: Readonly<Record<string, NdArray>>;
}

/**
 * Brings the inputs of the requests of a batch to one shape: gets those of each request, in batch order, and returns
 * as many, whose tensors agree in all dimensions but the first.
 */
export type BatchPadFunction = (
  requests: readonly Readonly<Record<string, NdArray>>[],
) => readonly Readonly<Record<string, unknown>>[];

/** What an input is filled up with. */
export type PadValue = number | bigint | boolean | string;

/** Batches of requests whose lengths differ. */
export interface VariableLengthOptions {
  /**
   * The group of a request: only requests of one group share a batch, and one of another group does not end it. Called
   * once for each request; one for which it throws fails with INVALID_ARG.
   * @default all requests are one group, in which other shapes end a batch
   */
  readonly batchBy?: (request: BatchingRequest) => BatchKey;
  /**
   * What a request adds to the cost of its batch: its tokens, for instance. A finite number, 0 or more. Called once for
   * each request; one for which it throws fails with INVALID_ARG.
   */
  readonly cost?: (request: BatchingRequest) => number;
  /** Most that the requests of one batch may cost together; one that costs more alone is refused. Needs `cost`. */
  readonly maxBatchCost?: number;
  /**
   * Fills inputs with variable dimensions up to the longest of the batch, at the end of each dimension: a value by
   * input name, or a function. Shapes of these inputs (of all inputs, for a function) then no longer end a batch.
   * Callbacks without `batch` get their requests one by one, as they came.
   */
  readonly pad?: Readonly<Record<string, PadValue>> | BatchPadFunction;
}

/** Names of the options. */
export const VARIABLE_LENGTH_OPTION_KEYS = keyList<VariableLengthOptions>({
  batchBy: true,
  cost: true,
  maxBatchCost: true,
  pad: true,
});
