import type { V2Request, V2Response } from "@tritonjs/http/frontend";
import { type ErrorReason, httpStatusOf, TritonError } from "@tritonjs/protocol";

type OpenAiErrorType =
  | "invalid_request_error"
  | "authentication_error"
  | "permission_error"
  | "rate_limit_error"
  | "server_error";

interface OpenAiErrorOptions {
  /** @default the kind that fits the status */
  readonly type?: OpenAiErrorType;
  /** Field of the request that is at fault. */
  readonly param?: string | undefined;
  readonly code?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An error that is answered as OpenAI's error object. */
export class OpenAiError extends Error {
  override readonly name = "OpenAiError";
  readonly type: OpenAiErrorType;
  readonly param: string | null;
  readonly code: string | null;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    readonly status: number,
    message: string,
    { type = typeOfStatus(status), param, code, headers = {} }: OpenAiErrorOptions = {},
  ) {
    super(message);
    this.type = type;
    this.param = param ?? null;
    this.code = code ?? null;
    this.headers = headers;
  }

  /** The body of its answer. All four members of `error` are always present. */
  get body() {
    const { message, type, param, code } = this;
    // Triton's OpenAI frontend has the message again in `detail`. Clients of OpenAI ignore it.
    return { error: { message, type, param, code }, detail: message };
  }
}

export function invalidField(param: string, message: string, code = "invalid_value"): OpenAiError {
  return new OpenAiError(400, message, { param, code });
}

/** The error of a field with a value of the wrong type. */
export function wrongType(param: string, expected: string, value: unknown): OpenAiError {
  return invalidField(param, `'${param}': expected ${expected}, got ${shown(value)}`, "invalid_type");
}

/** The error of a field that a request must have. */
export function missingField(param: string, expected: string): OpenAiError {
  const text = `you must provide '${param}': expected ${expected}`;
  return invalidField(param, text, "missing_required_parameter");
}

/** The error of an array that must have elements. */
export function emptyField(param: string, element: string): OpenAiError {
  return invalidField(param, `'${param}': expected at least one ${element}, got none`, "empty_array");
}

/** Checks the number of elements of an array. */
export function checkLength(param: string, values: readonly unknown[], most: number, elements: string): void {
  if (values.length <= most) return;
  const text = `'${param}': expected at most ${most} ${elements}, got ${values.length}`;
  throw invalidField(param, text, "array_above_max_length");
}

const MOST_SHOWN = 40;

/** A value as errors show it. */
export function shown(value: unknown): string {
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (typeof value === "object" && value !== null) return "an object";
  if (typeof value !== "string") return String(value);
  return `'${value.length <= MOST_SHOWN ? value : `${value.slice(0, MOST_SHOWN)}...`}'`;
}

function typeOfStatus(status: number): OpenAiErrorType {
  if (status >= 500) return "server_error";
  if (status === 429) return "rate_limit_error";
  if (status === 403) return "permission_error";
  return "invalid_request_error";
}

/** Makes the body of the refusal of a request that no endpoint has seen. */
export function requestFaultBody(message: string) {
  return new OpenAiError(400, message).body;
}

/** Reasons for which a client should slow down: OpenAI answers them with 429. */
const OVERLOAD: ReadonlySet<ErrorReason> = new Set(["QUEUE_FULL", "DEADLINE_TOO_CLOSE", "MODEL_BUSY"]);

/** Status of a request whose client, or whose caller, no longer waits. */
const CLIENT_CLOSED_REQUEST = 499;

/**
 * Describes any error as OpenAI does. An error that is neither an `OpenAiError` nor a `TritonError` is reported to the
 * host and not shown to the client.
 */
export function describeError(request: Pick<V2Request, "report" | "path">, thrown: unknown): OpenAiError {
  if (thrown instanceof OpenAiError) return thrown;
  if (!TritonError.is(thrown)) {
    request.report(thrown);
    return new OpenAiError(500, "internal error", { code: "internal" });
  }
  const status = statusOf(thrown);
  const param = thrown.code === "INVALID_ARG" ? fieldOf(thrown.message, request.path) : undefined;
  const code = status === 429 ? "rate_limit_exceeded" : thrown.reason.toLowerCase();
  return new OpenAiError(status, thrown.message, { param, code, headers: retryHeaders(thrown, status) });
}

/** Fields that a prompt is made of. */
const PROMPT_FIELDS: Readonly<Record<string, string>> = {
  "/v1/chat/completions": "messages",
  "/v1/completions": "prompt",
  "/v1/responses": "input",
};

/** The field of the request that a text model names in an error; undefined if it names none. */
function fieldOf(message: string, path: string): string | undefined {
  if (message.startsWith("max_tokens of a request")) return "max_tokens";
  if (message.startsWith("the chat template rejects the messages")) return "messages";
  if (message.startsWith("prompt of model '")) return PROMPT_FIELDS[path];
  const found = /^sampling parameter '([\w.]+)'|^input '(messages|tools)'/.exec(message);
  return found?.[1] ?? found?.[2];
}

/** Statuses decide whether clients retry: they do for 408, 409, 429, and from 500 on. */
function statusOf({ code, reason }: TritonError): number {
  if (OVERLOAD.has(reason)) return 429;
  switch (code) {
    case "CANCELLED":
      return CLIENT_CLOSED_REQUEST;
    case "UNKNOWN":
      return 500;
    case "UNSUPPORTED":
      return 400;
    default:
      return httpStatusOf(code, reason);
  }
}

function retryHeaders({ retryAfterMs }: TritonError, status: number): Record<string, string> {
  if (retryAfterMs !== undefined) {
    return {
      "retry-after": String(Math.ceil(retryAfterMs / 1000)),
      "retry-after-ms": String(Math.ceil(retryAfterMs)),
    };
  }
  return status === 429 || status === 503 ? { "retry-after": "1" } : {};
}

export function refusalResponse({ status, body, headers }: OpenAiError): V2Response {
  return {
    status,
    headers: { "content-type": "application/json", ...headers },
    body: Buffer.from(JSON.stringify(body)),
  };
}
