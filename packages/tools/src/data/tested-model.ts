import type { DataType } from "@tritonjs/protocol";

/** An input of the model that is measured. */
export interface TestedInput {
  readonly name: string;
  readonly datatype: DataType;
  /** Shape without the batch axis; -1 for a variable dimension. */
  readonly dims: readonly number[];
  readonly optional: boolean;
  /** Its values are shapes: it has no batch axis, and needs real data. */
  readonly isShapeTensor: boolean;
}

/** The properties of a model that its requests depend on. */
export interface TestedModel {
  readonly name: string;
  /** Empty for the version that the server chooses. */
  readonly version: string;
  /** Largest batch; 0 for a model without a batch axis. */
  readonly maxBatchSize: number;
  readonly decoupled: boolean;
  /** True for a model whose requests belong to sequences. */
  readonly isSequenceModel: boolean;
  readonly inputs: readonly TestedInput[];
  readonly outputs: readonly { readonly name: string; readonly datatype: DataType }[];
  /**
   * True where the server does not tell the configuration, so that the metadata of the v2 protocol has to do.
   * @default false
   */
  readonly isFromMetadata?: boolean;
  /** Names of the models of an ensemble, in the order of its steps. */
  readonly composingModels: readonly string[];
}
