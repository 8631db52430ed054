import type { DataType } from "@tritonjs/protocol";

/** An output as the configuration declares it. */
export interface DeclaredOutput {
  readonly name: string;
  readonly datatype: DataType;
  /** With the batch axis, as -1, when the model has one. */
  readonly shape: readonly number[];
  /** Whether the first dimension is the rows of the batch. */
  readonly hasRows: boolean;
}
