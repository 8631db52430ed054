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
  /** Milliseconds after which it is worth trying again, for UNAVAILABLE where the server can tell. */
  declare readonly retryAfterMs?: number;

  constructor(
    readonly code: ErrorCode,
    message: string,
    options: { cause?: unknown; retryAfterMs?: number } = {},
  ) {
    super(message, options);
    if (options.retryAfterMs !== undefined) this.retryAfterMs = options.retryAfterMs;
  }

  /** True for an error of this class, also when it comes from another copy of the library. */
  static is(value: unknown): value is TritonError {
    if (typeof value !== "object" || value === null) return false;
    try {
      return (value as Record<symbol, unknown>)[brand] === true;
    } catch {
      // A proxy may throw whatever it is asked.
      return false;
    }
  }

  /** Turns anything thrown into a `TritonError`: ours as it is, the rest as `code` with its message. */
  static from(thrown: unknown, code: ErrorCode = "INTERNAL"): TritonError {
    if (TritonError.is(thrown)) return thrown;
    return new TritonError(code, textOf(thrown), { cause: thrown });
  }
}

/** What there is to say about something thrown, which need not be an error, nor be there to be looked at. */
function textOf(thrown: unknown): string {
  try {
    if (!(thrown instanceof Error)) return String(thrown);
    return String(thrown.message || thrown.name);
  } catch {
    return "something was thrown that cannot be read";
  }
}
