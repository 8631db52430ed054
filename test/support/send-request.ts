import { InferenceRequest, type RequestHandle, type RequestSender } from "@tritonjs/core/internal";
import type { FoundModel, InferInit } from "@tritonjs/server";

/** Sends a request to a model that a look-up has found, as an exchange does. */
export function sendRequest(
  model: FoundModel,
  init: InferInit,
  receive: RequestSender["receive"] = () => {},
): RequestHandle {
  return model.infer(new InferenceRequest(model.name, init, { receive }));
}
