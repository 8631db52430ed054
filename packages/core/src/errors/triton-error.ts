import type { ErrorCode } from "./code.js";

const brand = Symbol.for("tritonjs.error");

/**
 * The one error class of the library. `code` says what kind of failure it is, `message` is what a client is
 * shown. `cause` stays in the process: it is never sent.
 *
 * @example
 * ```ts
 * throw new TritonError("NOT_FOUND", "Request for unknown model: 'm' is not found");
 * ```
 */
export class TritonError extends Error {
  override readonly name = "TritonError";
  readonly [brand] = true;

  constructor(
    readonly code: ErrorCode,
    message: string,
    options?: { cause?: unknown },
  ) {
    super(message, options);
  }

  /** True for an error of this class, also when it comes from another copy of the library. */
  static is(value: unknown): value is TritonError {
    return typeof value === "object" && value !== null && (value as Record<symbol, unknown>)[brand] === true;
  }

  /** Turns anything thrown into a `TritonError`: ours as it is, the rest as `code` with its message. */
  static from(thrown: unknown, code: ErrorCode = "INTERNAL"): TritonError {
    if (TritonError.is(thrown)) return thrown;
    const message = thrown instanceof Error ? thrown.message || thrown.name : String(thrown);
    return new TritonError(code, message, { cause: thrown });
  }
}
