import type { InferenceService } from "@tritonjs/core";
import { inference } from "#proto";
import { encodeStreamResponseParts } from "../encode/infer-response-parts.js";
import { duplex, type Method } from "../transport/method.js";
import type { HeaderForwarding } from "./forward-headers.js";
import { InferStream } from "./infer-stream.js";
import { inferencePath } from "./paths.js";
import type { Shutdown } from "./shutdown.js";

/** `ModelStreamInfer`. */
export function streamInferMethods(
  service: InferenceService,
  forwardHeaders: HeaderForwarding,
  shutdown: Shutdown,
): Method[] {
  return [
    duplex(
      {
        path: inferencePath("ModelStreamInfer"),
        protocol: "inference",
        request: inference.ModelInferRequest,
        response: { encodeParts: encodeStreamResponseParts },
      },
      (stream) => new InferStream(stream, service, forwardHeaders, shutdown).open(),
    ),
  ];
}
