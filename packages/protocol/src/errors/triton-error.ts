import type { ErrorCode } from "./code.js";
import type { ReasonOf } from "./error-reasons.js";

const brand = Symbol.for("tritonjs.error");

/** What a `TritonError` may carry besides its code and message. */
export interface TritonErrorOptions<Code extends ErrorCode = ErrorCode> {
  /** @default the general reason, which is named like the code */
  readonly reason?: ReasonOf<Code>;
  /** What led to the error. It stays in the process. */
  readonly cause?: unknown;
  /** Milliseconds after which it is worth trying again. */
  readonly retryAfterMs?: number;
}

/**
 * The one error class of the library. `code` is the kind of failure, `reason` is why, and `message` is the text that a
 * client gets. `reason` and `cause` stay in the process: the protocol has no place for them.
 *
 * @example
 * ```ts
 * throw new TritonError("NOT_FOUND", "no user 'ann'");
 * throw new TritonError("UNAVAILABLE", "the index is being rebuilt", { reason: "MODEL_NOT_READY" });
 * ```
 */
export class TritonError<Code extends ErrorCode = ErrorCode> extends Error {
  override readonly name = "TritonError";
  readonly [brand] = true;
  /** One of the reasons of the code. `errorReasons` says what each means and what to do. */
  readonly reason: ReasonOf<Code>;
  /** Milliseconds after which it is worth trying again, for UNAVAILABLE where the server can tell. */
  declare readonly retryAfterMs?: number;

  constructor(
    readonly code: Code,
    message: string,
    options: TritonErrorOptions<Code> = {},
  ) {
    super(message, options);
    // Each code is a reason of its own.
    this.reason = options.reason ?? (code as ErrorCode as ReasonOf<Code>);
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
    return "unknown error: the thrown value cannot be read";
  }
}
