import type { FoundModel, InferInit } from "@tritonjs/core/frontend";
import { InferenceRequest, type RequestHandle, type RequestSender } from "@tritonjs/core/internal";

/** Sends a request to a model that a look-up has found, as an exchange does. */
export function sendRequest(
  model: FoundModel,
  init: InferInit,
  receive: RequestSender["receive"] = () => {},
): RequestHandle {
  return model.infer(new InferenceRequest(model.name, init, { receive }));
}
