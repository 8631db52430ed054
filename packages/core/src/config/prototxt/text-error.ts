/** One thing that is wrong with a text, with where it stands: lines and columns from 1, columns in bytes. */
export interface TextError {
  readonly line: number;
  readonly column: number;
  /** What is wrong, in protobuf's words. */
  readonly text: string;
  /** Path of the field that was being read, like `input[0].dims`; "" at the top. */
  readonly field: string;
}
