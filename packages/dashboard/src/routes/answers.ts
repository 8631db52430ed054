import { TritonError } from "@tritonjs/protocol";
import { SECURITY_HEADERS } from "../page/page-files.js";

/** Answers with JSON. */
export function jsonAnswer(status: number, value: unknown): Response {
  return new Response(JSON.stringify(value), {
    status,
    headers: { ...SECURITY_HEADERS, "content-type": "application/json", "cache-control": "no-store" },
  });
}

/** Answers with the text of an error, which the page shows. */
export function faultAnswer(status: number, error: string, more: object = {}): Response {
  return jsonAnswer(status, { error, ...more });
}

/** Statuses of the errors of a change; others are 500. */
const STATUS: Readonly<Partial<Record<TritonError["code"], number>>> = {
  INVALID_ARG: 400,
  NOT_FOUND: 404,
  UNSUPPORTED: 501,
  UNAVAILABLE: 503,
};

/** Answers with an error that the server threw. */
export function errorAnswer(thrown: unknown): Response {
  const { code, message } = TritonError.from(thrown);
  return faultAnswer(STATUS[code] ?? 500, message);
}
