/** A tensor as the v2 metadata shows it: with the batch axis, when the model has one, as a leading -1. */
export interface TensorMetadata {
  readonly name: string;
  readonly datatype: string;
  readonly shape: number[];
}

/** The answer of `GET v2/models/M`. */
export interface ModelMetadata {
  readonly name: string;
  readonly versions: string[];
  readonly platform: string;
  readonly inputs: TensorMetadata[];
  readonly outputs: TensorMetadata[];
}
