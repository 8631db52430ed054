import { ClientGone, errorResponse, type V2Handler } from "@tritonjs/http/frontend";

/** Answers errors that a handler throws in Triton's form: `{ "error": message }` with the status of its code. */
export function answerErrors(handler: V2Handler): V2Handler {
  return async (request) => {
    try {
      return await handler(request);
    } catch (thrown) {
      if (thrown instanceof ClientGone) return undefined;
      return errorResponse(request, thrown, "application/json");
    }
  };
}
