import {
  type ErrorCode,
  type ErrorReason,
  errorReasons,
  type ReasonOf,
  reasonStatus,
} from "./error-reasons.js";

const brand = Symbol.for("tritonjs.error");

/** Optional members of a `TritonError`, besides its code and message. */
export interface TritonErrorOptions<Code extends ErrorCode = ErrorCode> {
  /** Why the operation failed. @default the general reason, which has the name of the code */
  readonly reason?: ReasonOf<Code>;
  /** The underlying error. It stays in the process. */
  readonly cause?: unknown;
  /** Milliseconds after which a retry makes sense. */
  readonly retryAfterMs?: number;
  /** Name of the error: "AbortError" for a call that the caller's `AbortSignal` ended. @default "TritonError" */
  readonly name?: TritonErrorName;
}

/** Names of a {@link TritonError}. As in `fetch`, a call that the caller's `AbortSignal` ended has an "AbortError". */
export type TritonErrorName = "TritonError" | "AbortError";

/**
 * The one error class of the library. `code` is the kind of failure, `reason` is the cause in one word, and `message`
 * is the text that a client gets. `reason` and `cause` stay in the process, because the protocol has no place for them.
 *
 * In the routes of an application the error keeps its HTTP status: fastify, Express, Koa and Nest read it.
 *
 * @example
 * ```ts
 * throw new TritonError("NOT_FOUND", "no user 'ann'"); // its statusCode is 404
 * throw new TritonError("UNAVAILABLE", "the index is being rebuilt", { reason: "MODEL_NOT_READY" });
 * ```
 */
export class TritonError<Code extends ErrorCode = ErrorCode> extends Error {
  override readonly name: TritonErrorName;
  readonly [brand] = true;
  /** One of the reasons of the code. `errorReasons` has its meaning and what to do about it. */
  readonly reason: ReasonOf<Code>;
  /** Milliseconds after which a retry makes sense, for UNAVAILABLE if the server can estimate it. */
  declare readonly retryAfterMs?: number;

  constructor(
    readonly code: Code,
    message: string,
    options: TritonErrorOptions<Code> = {},
  ) {
    super(message, options);
    this.name = options.name ?? "TritonError";
    // Each code is also a reason.
    this.reason = options.reason ?? (code as ErrorCode as ReasonOf<Code>);
    if (options.retryAfterMs !== undefined) this.retryAfterMs = options.retryAfterMs;
  }

  /** HTTP status of the code, the same that the HTTP frontend answers: 400 for INVALID_ARG. */
  get statusCode(): number {
    return httpStatusOf(this.code, this.reason);
  }

  // Frameworks may also set these three: Koa sets `status` before it answers.
  set statusCode(value: number) {
    setOwn(this, "statusCode", value);
  }

  /** The same as `statusCode`: Nest takes an error for one of HTTP only if it has both, and `expose`. */
  get status(): number {
    return this.statusCode;
  }

  set status(value: number) {
    setOwn(this, "status", value);
  }

  /** True if the message may be shown to a client, as Koa and Nest ask: for statuses below 500. */
  get expose(): boolean {
    return this.statusCode < 500;
  }

  set expose(value: boolean) {
    setOwn(this, "expose", value);
  }

  /** True for an error of this class, also if it comes from another copy of the library. */
  static is(value: unknown): value is TritonError {
    if (typeof value !== "object" || value === null) return false;
    try {
      return (value as Record<symbol, unknown>)[brand] === true;
    } catch {
      // A proxy may throw on any access.
      return false;
    }
  }

  /** Converts any thrown value to a `TritonError`, with `code` unless it is one. */
  static from(thrown: unknown, code: ErrorCode = "INTERNAL"): TritonError {
    if (TritonError.is(thrown)) return thrown;
    return new TritonError(code, textOf(thrown), { cause: thrown });
  }
}

function setOwn(error: TritonError, name: "statusCode" | "status" | "expose", value: unknown): void {
  Object.defineProperty(error, name, { value, writable: true, enumerable: true, configurable: true });
}

/** Text for a thrown value, which need not be an error, and may throw when it is inspected. */
function textOf(thrown: unknown): string {
  try {
    if (!(thrown instanceof Error)) return String(thrown);
    return String(thrown.message || thrown.name);
  } catch {
    return "unknown error: the thrown value cannot be read";
  }
}

/** Triton never answers 408, 409, 429 or 499: every code without a status of its own counts as the client's fault. */
const statuses: Readonly<Record<ErrorCode, number>> = {
  UNKNOWN: 400,
  INTERNAL: 500,
  NOT_FOUND: 404,
  INVALID_ARG: 400,
  UNAVAILABLE: 503,
  UNSUPPORTED: 501,
  ALREADY_EXISTS: 400,
  CANCELLED: 400,
};

/** The HTTP status of an error: that of its reason if it has one, else the one that Triton gives its code. */
export function httpStatusOf(code: ErrorCode, reason?: ErrorReason): number {
  return (reason === undefined ? undefined : reasonStatus(reason)?.http) ?? statuses[code];
}

/** Triton's texts for the codes, as in its log and in the reasons of the repository index. */
const WORDS: Readonly<Record<ErrorCode, string>> = {
  UNKNOWN: "Unknown",
  INTERNAL: "Internal",
  NOT_FOUND: "Not found",
  INVALID_ARG: "Invalid argument",
  UNAVAILABLE: "Unavailable",
  UNSUPPORTED: "Unsupported",
  ALREADY_EXISTS: "Already exists",
  CANCELLED: "Cancelled",
};

/** Formats an error as Triton does: `Invalid argument: <message>`. */
export function statusText(thrown: unknown): string {
  const { code, message } = TritonError.from(thrown);
  return `${WORDS[code]}: ${message}`;
}

/**
 * Makes an error without a stack trace, for failures that hit many requests at once, such as a full queue, or a client
 * that leaves with thousands of requests. The place where such an error was made has no meaning, and recording it would
 * be the most expensive part.
 */
export function errorWithoutStack<Code extends ErrorCode>(
  code: Code,
  message: string,
  options?: TritonErrorOptions<Code>,
): TritonError<Code> {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return new TritonError(code, message, options);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/**
 * Makes the error of a reason, which decides its code. The client does not use it: the table of reasons would be half of
 * the client's bundle for browsers.
 */
export function errorFor<Reason extends ErrorReason>(
  reason: Reason,
  message: string,
  options?: Omit<TritonErrorOptions, "reason">,
): TritonError<(typeof errorReasons)[Reason]["code"]> {
  const { code } = errorReasons[reason];
  return new TritonError<ErrorCode>(code, message, { ...options, reason }) as never;
}

/** Triton's text for the error of a request that reached its time limit. */
export const TIMEOUT_TEXT = "Request timeout expired";

/** The error of a request that reached its time limit, in a queue or anywhere else. */
export function timeoutError(): TritonError {
  return errorWithoutStack("UNAVAILABLE", TIMEOUT_TEXT, { reason: "TIMEOUT" });
}

/** The error of a client's call that has reached its time limit. */
export function noAnswerError(timeoutMs: number): TritonError {
  return new TritonError("UNAVAILABLE", `the server did not answer within ${timeoutMs} ms`, {
    reason: "CLIENT_TIMEOUT",
  });
}

/** True for the error of a call that has reached a time limit of the server or of the client. */
export function isTimeout({ reason }: TritonError): boolean {
  return reason === "TIMEOUT" || reason === "CLIENT_TIMEOUT";
}

/**
 * The refusal of a request whose queue is full.
 *
 * @param id id that the client gave the request; empty for none
 * @param retryAfterMs approximate time until there is room, in milliseconds
 */
export function queueFullError(id: string, retryAfterMs?: number): TritonError {
  return errorWithoutStack(
    "UNAVAILABLE",
    `[request id: ${id || "<id_unknown>"}] Exceeds maximum queue size`,
    {
      reason: "QUEUE_FULL",
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    },
  );
}
