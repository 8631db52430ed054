import { TritonError } from "@tritonjs/protocol";
import type { Structure } from "../structures/structure.js";

/** A parser or a server that gets random inputs. */
export interface FuzzTarget {
  /** Good inputs, from which others are made. */
  readonly seeds: readonly Uint8Array[];
  /** Words and bytes that mean something to the target; none unless given. */
  readonly tokens?: readonly (string | Uint8Array)[];
  /** Form of the inputs; bytes without a form unless given. */
  readonly structure?: Structure;
  /** Inputs that run at the same time; 1 unless given. */
  readonly lanes?: number;
  /** Largest input in bytes; 16 KiB unless given. */
  readonly maxBytes?: number;
  /**
   * Runs one input and returns how it ended, in a word for the report, such as the status of the answer.
   *
   * @throws any error for a fault of the library
   */
  run(input: Uint8Array): string | Promise<string>;
  /** Expects that a good input is still answered right. */
  check?(): void | Promise<void>;
  close?(): void | Promise<void>;
}

/** Starts a target. */
export type OpenTarget = () => FuzzTarget | Promise<FuzzTarget>;

/** The code of a refusal. @throws the error itself unless it is a `TritonError` with a text of its own */
export function refusalOf(error: unknown): string {
  if (!TritonError.is(error) || error.message === "") throw error;
  // An INTERNAL error that wraps another one is an exception that nobody expected.
  if (error.code === "INTERNAL" && error.cause !== undefined) throw error.cause;
  return error.code;
}

/** Expects a condition. @throws Error with the text otherwise */
export function expectThat(condition: boolean, text: () => string): void {
  if (!condition) throw new Error(text());
}
