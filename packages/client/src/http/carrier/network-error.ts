import { TritonError } from "@tritonjs/protocol";

/** Errors of name resolution and of connecting, after which nothing was sent. */
const BEFORE_SENDING: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENETDOWN",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** True when the error of `fetch` shows that there was no connection. A browser does not tell. */
export function wasNeverSent(thrown: unknown): boolean {
  return BEFORE_SENDING.has(codeOf(thrown) ?? "");
}

/** The error of a request without an answer. */
export function networkError(thrown: unknown, url: string): TritonError {
  if (TritonError.is(thrown)) return thrown;
  const { origin } = new URL(url);
  const what = wasNeverSent(thrown) ? "cannot connect to" : "incomplete answer from";
  return new TritonError("UNAVAILABLE", `${what} ${origin}: ${reasonOf(thrown)}`, {
    reason: "CONNECTION_FAILED",
    cause: thrown,
  });
}

/** The innermost code of an error and its causes. */
function codeOf(thrown: unknown): string | undefined {
  return chain(thrown)
    .map((error) => (error as { code?: unknown }).code)
    .findLast((code) => typeof code === "string");
}

/** The error's code, or the text of the innermost error. */
function reasonOf(thrown: unknown): string {
  const innermost = chain(thrown).at(-1);
  return codeOf(thrown) ?? (innermost instanceof Error ? innermost.message : String(thrown));
}

const MAX_CAUSES = 8;

function chain(thrown: unknown): object[] {
  const errors: object[] = [];
  let error = thrown;
  while (typeof error === "object" && error !== null && errors.length < MAX_CAUSES) {
    errors.push(error);
    error = (error as { cause?: unknown }).cause;
  }
  return errors;
}
