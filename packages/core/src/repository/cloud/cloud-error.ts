import { TritonError } from "@tritonjs/protocol";

/** The error of an object that has changed since it was listed. */
export class ObjectChanged extends Error {
  readonly statusCode = 412;

  constructor(key: string) {
    super(`object ${key} changed while it was copied`);
  }
}

/** The HTTP status in an error of a vendor's SDK. Each SDK has it in a different place. */
export function statusOf(error: unknown): number | undefined {
  const { $metadata, statusCode, code } = (error ?? {}) as {
    readonly $metadata?: { readonly httpStatusCode?: unknown };
    readonly statusCode?: unknown;
    readonly code?: unknown;
  };
  const found = [$metadata?.httpStatusCode, statusCode, code].find((value) => typeof value === "number");
  return found as number | undefined;
}

/** The error of a failed action with a vendor's SDK, in Triton's text. */
export function cloudError(tried: string, error: unknown): TritonError {
  if (TritonError.is(error)) {
    return new TritonError(error.code, `${tried}: ${error.message}`, { reason: error.reason, cause: error });
  }
  const { name = "Error", message } = deepest(error);
  const status = statusOf(error);
  // Some answers have no message besides their status.
  const words = [...new Set([message, ...(status === undefined ? [] : [`HTTP status ${status}`])])].filter(
    (word) => word !== undefined && word !== "" && word !== "UnknownError",
  );
  const text = `${tried} due to exception: ${name}, error message: ${words.join(", ") || "none"}`;
  return new TritonError("INTERNAL", text, { reason: "FILE_NOT_READABLE", cause: error });
}

/** Finds the innermost error. A failed connection is one error for each address, inside an error without a message. */
function deepest(error: unknown): { readonly name?: string; readonly message?: string } {
  if (error instanceof AggregateError && error.message === "" && error.errors.length > 0) {
    return deepest(error.errors[0]);
  }
  return error instanceof Error ? error : { message: String(error) };
}
