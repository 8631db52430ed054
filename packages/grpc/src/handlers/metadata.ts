import type { InferenceService } from "@tritonjs/core/frontend";
import { inference, inferencePath } from "@tritonjs/grpc-messages";
import { type Method, unary } from "../transport/method.js";

/** Metadata of the server and its models, and configurations: `ServerMetadata`, `ModelMetadata`, `ModelConfig`. */
export function metadataMethods(service: InferenceService): Method[] {
  return [
    unary(
      {
        path: inferencePath("ServerMetadata"),
        protocol: "metadata",
        request: inference.ServerMetadataRequest,
        response: inference.ServerMetadataResponse,
      },
      () => {
        const { name, version, extensions } = service.serverMetadata();
        return { name, version, extensions: [...extensions] };
      },
    ),
    unary(
      {
        path: inferencePath("ModelMetadata"),
        protocol: "metadata",
        request: inference.ModelMetadataRequest,
        response: inference.ModelMetadataResponse,
      },
      ({ name, version }) => service.modelMetadata(name, version),
    ),
    unary(
      {
        path: inferencePath("ModelConfig"),
        protocol: "model-config",
        request: inference.ModelConfigRequest,
        response: inference.ModelConfigResponse,
      },
      ({ name, version }) => ({
        config: inference.ModelConfig.fromObject(service.modelConfig(name, version)),
      }),
    ),
  ];
}
