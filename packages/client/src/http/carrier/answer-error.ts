import type { TritonError } from "@tritonjs/protocol";
import { answeredError } from "../../call/answered-error.js";
import { isObject, parseAnswerJson } from "../json/parse-json.js";
import { retryAfterOf } from "./retry-after.js";

type ErrorCode = TritonError["code"];

const codes: Readonly<Record<number, ErrorCode>> = {
  400: "INVALID_ARG",
  // Restricted routes: over gRPC they answer UNAVAILABLE.
  401: "UNAVAILABLE",
  403: "UNAVAILABLE",
  404: "NOT_FOUND",
  405: "UNSUPPORTED",
  408: "UNAVAILABLE",
  409: "ALREADY_EXISTS",
  429: "UNAVAILABLE",
  499: "CANCELLED",
  500: "INTERNAL",
  501: "UNSUPPORTED",
  502: "UNAVAILABLE",
  503: "UNAVAILABLE",
  504: "UNAVAILABLE",
};

/** Reasons that a status gives. */
const reasons: Readonly<Record<number, "UNAUTHENTICATED" | "PERMISSION_DENIED">> = {
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
};

const EXCERPT_LENGTH = 200;

/** The `cause` of an error that a server answered: its HTTP status. */
export class HttpStatusError extends Error {
  override readonly name = "HttpStatusError";

  constructor(readonly status: number) {
    super(`HTTP status ${status}`);
  }
}

/** The error code of a status. Triton answers 400 also for UNKNOWN, ALREADY_EXISTS and CANCELLED. */
export function codeFromHttpStatus(status: number): ErrorCode {
  const code = codes[status];
  if (code !== undefined) return code;
  if (status >= 400 && status < 500) return "INVALID_ARG";
  return status >= 500 ? "INTERNAL" : "UNKNOWN";
}

/** Makes the error of an answer, with the server's text if there is one, and with `retryAfterMs`. */
export function answerError(status: number, headers: Headers, body: Uint8Array): TritonError {
  const text = new TextDecoder().decode(body);
  const message = serverMessage(text) ?? `HTTP status ${status}${excerpt(text)}`;
  const code = codeFromHttpStatus(status);
  const retryAfterMs = code === "UNAVAILABLE" ? retryAfterOf(headers, Date.now()) : undefined;
  const cause = new HttpStatusError(status);
  const options = { cause, ...(retryAfterMs !== undefined && { retryAfterMs }) };
  return answeredError(code, message, options, reasons[status]);
}

/** The text of an error in JSON or in a server-sent event. */
function serverMessage(text: string): string | undefined {
  try {
    const json = parseAnswerJson(text.replace(/^data:/, ""));
    const error = isObject(json) ? json.error : undefined;
    return typeof error === "string" ? error : undefined;
  } catch {
    return undefined;
  }
}

/** The beginning of an unexpected body on one line, to be appended to a message. */
export function excerpt(text: string): string {
  const line = text
    .slice(0, EXCERPT_LENGTH * 4)
    .replace(/[\s\p{C}]+/gu, " ")
    .trim();
  if (line === "") return "";
  return line.length > EXCERPT_LENGTH ? `: ${line.slice(0, EXCERPT_LENGTH)}...` : `: ${line}`;
}
