import { type DataType, isDataType } from "@tritonjs/core";

/** What Triton calls a data type that it does not know. */
const INVALID = "<invalid>";

/**
 * The data type of an input as the client named it. An unknown name becomes one that no model expects, so that
 * the request is refused with the name that Triton's text has.
 */
export function toDataType(name: string): DataType {
  return isDataType(name) ? name : (INVALID as DataType);
}
