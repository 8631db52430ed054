import type { DataType } from "@tritonjs/protocol";

/** An output as the configuration declares it. */
export interface DeclaredOutput {
  readonly name: string;
  readonly datatype: DataType;
  /** Shape with the batch axis, as -1, if the model has one. */
  readonly shape: readonly number[];
  /** True if the first dimension is the rows of the batch. */
  readonly hasRows: boolean;
}
