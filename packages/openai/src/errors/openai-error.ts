/** Kinds of errors, as OpenAI names them. */
export type OpenAiErrorType =
  | "invalid_request_error"
  | "authentication_error"
  | "permission_error"
  | "rate_limit_error"
  | "server_error";

/** Members of an error beside its status and message. */
export interface OpenAiErrorOptions {
  /** @default the kind that fits the status */
  readonly type?: OpenAiErrorType;
  /** Field of the request that is at fault. */
  readonly param?: string;
  /** The cause in one word, for programs. */
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
}

/** The error of a field with a wrong value. */
export function invalidField(param: string, message: string, code = "invalid_value"): OpenAiError {
  return new OpenAiError(400, message, { param, code });
}

/** The error of a field with a value of the wrong type. */
export function wrongType(param: string, expected: string, value: unknown): OpenAiError {
  return invalidField(param, `'${param}': expected ${expected}, got ${shown(value)}`, "invalid_type");
}

/** Longest value that an error repeats. */
const MOST_SHOWN = 40;

/** A value as errors show it. */
export function shown(value: unknown): string {
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (typeof value === "object" && value !== null) return "an object";
  if (typeof value !== "string") return String(value);
  return `'${value.length <= MOST_SHOWN ? value : `${value.slice(0, MOST_SHOWN)}...`}'`;
}

/** The kind of error that fits an HTTP status. */
export function typeOfStatus(status: number): OpenAiErrorType {
  if (status >= 500) return "server_error";
  if (status === 429) return "rate_limit_error";
  if (status === 403) return "permission_error";
  return "invalid_request_error";
}
