import type { PinnedModel } from "@tritonjs/core/frontend";
import { ClientGone } from "@tritonjs/http/frontend";
import { TritonError } from "@tritonjs/protocol";
import { readJsonObject } from "../body/read-body.js";
import { OpenAiError } from "../errors/openai-error.js";
import { Fields } from "../fields/fields.js";
import { acceptCommonFields } from "../fields/known-fields.js";
import type { OpenAiExchange } from "../generation/exchange.js";

/**
 * Reads the body of a request, and warns of unknown fields.
 *
 * @param read reads all fields of the endpoint
 * @throws OpenAiError for the first field at fault
 */
export async function readRequest<T>(
  { request, memory, maxBodySize, warnings }: OpenAiExchange,
  read: (fields: Fields) => T,
): Promise<T> {
  const fields = new Fields(await readJsonObject(request, memory, maxBodySize));
  const value = read(fields);
  acceptCommonFields(fields);
  for (const name of fields.unread()) warnings.unknown(request.path, name);
  return value;
}

/**
 * Looks up the model of a request. While its queue is full, waits for the refusal's turn.
 *
 * @throws OpenAiError 404 for an unknown model; TritonError UNAVAILABLE for one that is not ready, or whose queue is
 * full; ClientGone when the client leaves meanwhile
 */
export async function lookUpModel(
  { service, request, requestId }: OpenAiExchange,
  name: string,
): Promise<PinnedModel> {
  let pinned: PinnedModel;
  try {
    pinned = service.model(name, "");
  } catch (error) {
    if (!TritonError.is(error) || error.code !== "NOT_FOUND") throw error;
    throw unknownModel(name, error);
  }
  const wait = pinned.awaitRoom(requestId);
  if (wait !== undefined) {
    const stopWatching = request.onGone(() => wait.leave());
    try {
      await wait.turn;
    } catch (refusal) {
      throw request.gone ? new ClientGone(refusal) : refusal;
    } finally {
      stopWatching();
    }
  }
  return pinned;
}

/** Creates the error for a name that no model has. */
export function unknownModel(name: string, cause?: unknown): OpenAiError {
  const error = new OpenAiError(404, `Unknown model: ${name}`, { param: "model", code: "model_not_found" });
  error.cause = cause;
  return error;
}
