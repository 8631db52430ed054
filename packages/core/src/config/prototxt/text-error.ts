/** One error in a text, with its position: lines and columns from 1, columns in bytes. */
export interface TextError {
  readonly line: number;
  readonly column: number;
  /** The error, in protobuf's words. */
  readonly text: string;
  /** Path of the field that was being read, such as `input[0].dims`; "" at the top. */
  readonly field: string;
}
