import type { InferenceService } from "@tritonjs/core/frontend";
import type { LoadParameters } from "@tritonjs/core/types";
import { TritonError } from "@tritonjs/protocol";
import { inference, inferencePath } from "@tritonjs/protocol/grpc";
import { invalidArgument } from "../status-from-code.js";
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

/** `ModelStatistics`: of one model, or of all for an empty name. */
export function statisticsMethods(service: InferenceService): Method[] {
  return [
    unary(
      {
        path: inferencePath("ModelStatistics"),
        protocol: "statistics",
        request: inference.ModelStatisticsRequest,
        response: inference.ModelStatisticsResponse,
      },
      ({ name, version }) => ({
        modelStats: service.statistics(name, version).map(({ batchStats, memoryUsage, ...report }) => ({
          ...report,
          batchStats: [...batchStats],
          memoryUsage: [...memoryUsage],
        })),
      }),
    ),
  ];
}

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
