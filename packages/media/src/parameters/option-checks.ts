import { TritonError } from "@tritonjs/protocol";

/** Text for a value in an error message. */
export function optionText(value: unknown): string {
  return typeof value === "string"
    ? `'${value}'`
    : Array.isArray(value)
      ? `[${value.join(", ")}]`
      : String(value);
}

/** Creates the error of an invalid option. */
export function mediaOptionError(name: string, expected: string, got: unknown): TritonError {
  return new TritonError("INVALID_ARG", `${name}: expected ${expected}, got ${optionText(got)}`, {
    reason: "INVALID_OPTION",
  });
}

/** @throws TritonError INVALID_ARG unless the value is an integer in the range */
export function assertInteger(name: string, value: number, least: number, most: number): void {
  if (Number.isInteger(value) && value >= least && value <= most) return;
  throw mediaOptionError(name, `an integer from ${least} to ${most}`, value);
}

/** @throws TritonError INVALID_ARG unless the value is one of the words */
export function assertOneOf(name: string, value: string, words: readonly string[]): void {
  if (words.includes(value)) return;
  throw mediaOptionError(name, `one of ${words.join(", ")}`, value);
}
