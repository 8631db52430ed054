import { type InferenceService, TritonError } from "@tritonjs/core";
import { inference } from "#proto";
import { invalidArgument } from "../decode/invalid-argument.js";
import { type Method, unary } from "../transport/method.js";
import { inferencePath } from "./paths.js";

type LoadParameters = Readonly<Record<string, inference.ModelRepositoryParameter.$Properties>>;

const protocol = "model-repository";

/** The model repository: `RepositoryIndex`; `RepositoryModelLoad` and `RepositoryModelUnload` are not allowed. */
export function repositoryMethods(service: InferenceService): Method[] {
  return [
    unary(
      {
        path: inferencePath("RepositoryIndex"),
        protocol,
        request: inference.RepositoryIndexRequest,
        response: inference.RepositoryIndexResponse,
      },
      ({ repositoryName, ready }) => {
        refuseRepositoryName(repositoryName);
        return { models: service.repositoryIndex(ready) };
      },
    ),
    unary(
      {
        path: inferencePath("RepositoryModelLoad"),
        protocol,
        request: inference.RepositoryModelLoadRequest,
        response: inference.RepositoryModelLoadResponse,
      },
      ({ repositoryName, parameters }) => {
        refuseRepositoryName(repositoryName);
        checkLoadParameters(parameters);
        throw notAllowed();
      },
    ),
    unary(
      {
        path: inferencePath("RepositoryModelUnload"),
        protocol,
        request: inference.RepositoryModelUnloadRequest,
        response: inference.RepositoryModelUnloadResponse,
      },
      ({ repositoryName, parameters }) => {
        refuseRepositoryName(repositoryName);
        checkUnloadParameters(parameters);
        throw notAllowed();
      },
    ),
  ];
}

function refuseRepositoryName(repositoryName: string): void {
  if (repositoryName === "") return;
  throw new TritonError("UNSUPPORTED", "'repository_name' specification is not supported");
}

function checkLoadParameters(parameters: LoadParameters): void {
  for (const [key, { parameterChoice }] of Object.entries(parameters)) {
    const expected = key === "config" ? "stringParam" : key.startsWith("file:") ? "bytesParam" : undefined;
    if (expected === undefined) throw invalidArgument(`unrecognized load parameter '${key}'.`);
    if (parameterChoice !== expected) {
      const kind = expected === "stringParam" ? "string_param" : "bytes_param";
      throw invalidArgument(`invalid value type for load parameter '${key}', expected ${kind}.`);
    }
  }
}

function checkUnloadParameters({ unload_dependents: dependents }: LoadParameters): void {
  if (dependents === undefined || dependents.parameterChoice === "boolParam") return;
  throw invalidArgument("invalid value type for 'unload_dependents' parameter, expected bool_param.");
}

function notAllowed(): TritonError {
  return new TritonError("UNAVAILABLE", "explicit model load / unload is not allowed if polling is enabled");
}
