import type { NdArray } from "ndarray";
import { keyList } from "../schema/key-list.js";

/** Key by which requests are grouped. */
export type BatchKey = string | number | bigint | boolean;

/** A request as `batchBy` and `cost` see it, on arrival. */
export interface BatchingRequest {
  /** Id that the client gave, or an empty string. */
  readonly id: string;
  readonly parameters: Readonly<Record<string, string | number | bigint | boolean>>;
  readonly priority: number;
  /** Time that the client allows in the queue, in microseconds; 0 for any. */
  readonly queueTimeoutMicroseconds: number;
  /** Outputs that the client requested; empty for all. */
  readonly requestedOutputs: readonly string[];
  readonly correlationId: bigint | string | undefined;
  readonly sequenceStart: boolean;
  readonly sequenceEnd: boolean;
  /** Rows along the batch axis; 0 for a model without one. */
  readonly batchSize: number;
  /** The tensors, with the batch axis. Read-only. */
  readonly inputs: Readonly<Record<string, NdArray>>;
}

/**
 * Brings the inputs of the requests of a batch to one shape. It gets the inputs of each request, in batch order. It
 * returns as many, whose tensors agree in all dimensions but the first.
 */
export type BatchPadFunction = (
  requests: readonly Readonly<Record<string, NdArray>>[],
) => readonly Readonly<Record<string, unknown>>[];

/** Value with which an input is filled up. */
export type PadValue = number | bigint | boolean | string;

/** How requests of different lengths share batches. */
export interface VariableLengthOptions {
  /**
   * Returns the group of a request. Only requests of one group share a batch, and a request of another group does not
   * end the batch. Called once for each request. If it throws, the request fails with INVALID_ARG.
   * @default all requests are one group, in which a different shape ends a batch
   */
  readonly batchBy?: (request: BatchingRequest) => BatchKey;
  /**
   * Returns the share of a request in the cost of its batch, such as its number of tokens. The result is a finite
   * number, 0 or more. Called once for each request. If it throws, the request fails with INVALID_ARG.
   */
  readonly cost?: (request: BatchingRequest) => number;
  /** Largest total cost of one batch. A request that costs more by itself is refused. Requires `cost`. */
  readonly maxBatchCost?: number;
  /**
   * Fills inputs with variable dimensions up to the longest of the batch, at the end of each dimension: a value by
   * input name, or a function. Different shapes of these inputs (of all inputs, for a function) then no longer end a
   * batch. Callbacks without `batch` get their requests one by one, unpadded.
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
