import type { InferenceService } from "@tritonjs/core/frontend";
import type { LoadParameters } from "@tritonjs/core/types";
import { inference, inferencePath } from "@tritonjs/grpc-messages";
import { TritonError } from "@tritonjs/protocol";
import { invalidArgument } from "../decode/invalid-argument.js";
import { type Method, unary } from "../transport/method.js";

type Parameters = Readonly<Record<string, inference.ModelRepositoryParameter.$Properties>>;

const protocol = "model-repository";

/** The model repository: `RepositoryIndex`, `RepositoryModelLoad`, `RepositoryModelUnload`. */
export function repositoryMethods(service: InferenceService): Method[] {
  return [
    unary(
      {
        path: inferencePath("RepositoryIndex"),
        protocol,
        request: inference.RepositoryIndexRequest,
        response: inference.RepositoryIndexResponse,
      },
      async ({ repositoryName, ready }) => {
        refuseRepositoryName(repositoryName);
        return { models: await service.repositoryIndex(ready) };
      },
    ),
    unary(
      {
        path: inferencePath("RepositoryModelLoad"),
        protocol,
        request: inference.RepositoryModelLoadRequest,
        response: inference.RepositoryModelLoadResponse,
      },
      async ({ repositoryName, modelName, parameters }) => {
        refuseRepositoryName(repositoryName);
        await service.loadModel(modelName, loadParameters(parameters));
        return {};
      },
    ),
    unary(
      {
        path: inferencePath("RepositoryModelUnload"),
        protocol,
        request: inference.RepositoryModelUnloadRequest,
        response: inference.RepositoryModelUnloadResponse,
      },
      async ({ repositoryName, modelName, parameters }) => {
        refuseRepositoryName(repositoryName);
        await service.unloadModel(modelName, { unloadDependents: unloadsDependents(parameters) });
        return {};
      },
    ),
  ];
}

function refuseRepositoryName(repositoryName: string): void {
  if (repositoryName === "") return;
  throw new TritonError("UNSUPPORTED", "'repository_name' specification is not supported");
}

function loadParameters(parameters: Parameters): LoadParameters {
  const files = new Map<string, Uint8Array>();
  let config: string | undefined;
  for (const [key, { parameterChoice, stringParam, bytesParam }] of Object.entries(parameters)) {
    const expected = key === "config" ? "stringParam" : key.startsWith("file:") ? "bytesParam" : undefined;
    if (expected === undefined)
      throw invalidArgument(`unrecognized load parameter '${key}'.`, "INVALID_LOAD_REQUEST");
    if (parameterChoice !== expected) {
      const kind = expected === "stringParam" ? "string_param" : "bytes_param";
      throw invalidArgument(
        `invalid value type for load parameter '${key}', expected ${kind}.`,
        "INVALID_LOAD_REQUEST",
      );
    }
    if (key === "config") config = stringParam ?? "";
    else files.set(key.slice("file:".length), bytesParam ?? new Uint8Array());
  }
  return { config, files };
}

function unloadsDependents({ unload_dependents: dependents }: Parameters): boolean {
  if (dependents === undefined) return false;
  if (dependents.parameterChoice === "boolParam") return dependents.boolParam ?? false;
  throw invalidArgument(
    "invalid value type for 'unload_dependents' parameter, expected bool_param.",
    "INVALID_LOAD_REQUEST",
  );
}
