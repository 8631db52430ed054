import type { DataType } from "@tritonjs/protocol";
import type { BatchPadFunction, PadValue } from "../config/options/variable-length-options.js";

/** An input that says which elements of a padded input are its own: 1 there, 0 where it was filled up. */
export interface MaskInput {
  readonly name: string;
  readonly datatype: DataType;
  readonly sourceInput: string;
}

/** An output whose variable dimensions are cut back to those that an input had before it was padded. */
export interface CutOutput {
  readonly name: string;
  readonly sourceInput: string;
}

/** How the requests of a batch are brought to one shape, and their answers back to their own. */
export interface PaddingRules {
  /** What each input is filled up with. */
  readonly values: Readonly<Record<string, PadValue>>;
  /** Does it instead of `values`. Cannot go to another thread. */
  readonly pad?: BatchPadFunction | undefined;
  readonly masks: readonly MaskInput[];
  readonly cuts: readonly CutOutput[];
}
