import { TritonError } from "@tritonjs/core";

/** Outcome of a promise: `done`, or code and message of the error. */
export async function outcomeOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
    return "done";
  } catch (error) {
    return TritonError.is(error) ? `${error.code} ${error.message}` : String(error);
  }
}

/** Outcomes of several promises. */
export function outcomesOf(promises: Iterable<Promise<unknown>>): Promise<string[]> {
  return Promise.all(Array.from(promises, outcomeOf));
}

/** Code and message of the error that a call throws. */
export function thrownBy(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    return TritonError.is(error) ? `${error.code} ${error.message}` : String(error);
  }
  return "nothing was thrown";
}
