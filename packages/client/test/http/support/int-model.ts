import { TritonError } from "@tritonjs/core";
import { expect } from "vitest";

/** Configuration of a model with an input and an output of one integer. */
export const config = {
  name: "m",
  max_batch_size: 0,
  input: [{ name: "IN", data_type: "TYPE_INT32", dims: [1] }],
  output: [{ name: "OUT", data_type: "TYPE_INT32", dims: [1] }],
};

/** The answer of that model. */
export const answer = { outputs: [{ name: "OUT", datatype: "INT32", shape: [1], data: [1] }] };

/** The error with which a call rejects. */
export async function failure(promise: Promise<unknown>): Promise<TritonError> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(TritonError.is(error)).toBe(true);
  return error as TritonError;
}
