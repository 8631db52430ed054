import type { DataType } from "@tritonjs/protocol";
import type { BatchPadFunction, PadValue } from "../config/options/variable-length-options.js";

/** A mask input for a padded input: 1 for elements of the request, 0 for padding. */
export interface MaskInput {
  readonly name: string;
  readonly datatype: DataType;
  readonly sourceInput: string;
}

/** An output whose variable dimensions are cut back to those that an input had before padding. */
export interface CutOutput {
  readonly name: string;
  readonly sourceInput: string;
}

/** Rules that pad the requests of a batch to one shape, and cut their answers back. */
export interface PaddingRules {
  /** Fill value of each input. */
  readonly values: Readonly<Record<string, PadValue>>;
  /** Pads instead of `values`. It cannot be sent to another thread. */
  readonly pad?: BatchPadFunction | undefined;
  readonly masks: readonly MaskInput[];
  readonly cuts: readonly CutOutput[];
}
