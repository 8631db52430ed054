import { type InferenceService, TritonError } from "@tritonjs/core";
import { inference } from "#proto";
import { type Method, unary } from "../transport/method.js";
import { inferencePath } from "./paths.js";

/** The model repository: `RepositoryIndex`. */
export function repositoryMethods(service: InferenceService): Method[] {
  return [
    unary(
      {
        path: inferencePath("RepositoryIndex"),
        protocol: "model-repository",
        request: inference.RepositoryIndexRequest,
        response: inference.RepositoryIndexResponse,
      },
      ({ repositoryName, ready }) => {
        refuseRepositoryName(repositoryName);
        return { models: service.repositoryIndex(ready) };
      },
    ),
  ];
}

function refuseRepositoryName(repositoryName: string): void {
  if (repositoryName === "") return;
  throw new TritonError("UNSUPPORTED", "'repository_name' specification is not supported");
}
