import { inferencePath } from "@tritonjs/grpc-messages";
import { inferRequestDecoder } from "../decode/infer-request-decoder.js";
import { encodeStreamResponseParts } from "../encode/infer-response-parts.js";
import { duplex, type Method } from "../transport/method.js";
import type { InferContext } from "./infer-context.js";
import { InferStream } from "./infer-stream.js";

/** `ModelStreamInfer`. */
export function streamInferMethods(context: InferContext): Method[] {
  return [
    duplex(
      {
        path: inferencePath("ModelStreamInfer"),
        protocol: "inference",
        request: inferRequestDecoder(context.service),
        response: { encodeParts: encodeStreamResponseParts },
      },
      (stream) => new InferStream(stream, context).open(),
    ),
  ];
}
