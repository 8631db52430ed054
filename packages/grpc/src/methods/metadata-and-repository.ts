import type { InferenceService } from "@tritonjs/core/frontend";
import type { LoadParameters } from "@tritonjs/core/types";
import { TritonError } from "@tritonjs/protocol";
import { inference } from "@tritonjs/protocol/grpc";
import { invalidArgument } from "../status-from-code.js";
import { type Method, rpc } from "../transport/method.js";

/** Metadata of the server and its models, and configurations: `ServerMetadata`, `ModelMetadata`, `ModelConfig`. */
export function metadataMethods(service: InferenceService): Method[] {
  return [
    rpc("ServerMetadata", "metadata", () => {
      const { name, version, extensions } = service.serverMetadata();
      return { name, version, extensions: [...extensions] };
    }),
    rpc("ModelMetadata", "metadata", ({ name, version }) => service.modelMetadata(name, version)),
    rpc("ModelConfig", "model-config", ({ name, version }) => ({
      config: inference.ModelConfig.fromObject(service.modelConfig(name, version)),
    })),
  ];
}

/** `ModelStatistics`: of one model, or of all for an empty name. */
export function statisticsMethods(service: InferenceService): Method[] {
  return [
    rpc("ModelStatistics", "statistics", ({ name, version }) => ({
      modelStats: service.statistics(name, version).map(({ batchStats, memoryUsage, ...report }) => ({
        ...report,
        batchStats: [...batchStats],
        memoryUsage: [...memoryUsage],
      })),
    })),
  ];
}

type Parameters = Readonly<Record<string, inference.ModelRepositoryParameter.$Properties>>;

const protocol = "model-repository";

/** The model repository: `RepositoryIndex`, `RepositoryModelLoad`, `RepositoryModelUnload`. */
export function repositoryMethods(service: InferenceService): Method[] {
  return [
    rpc("RepositoryIndex", protocol, async ({ repositoryName, ready }) => {
      refuseRepositoryName(repositoryName);
      return { models: await service.repositoryIndex(ready) };
    }),
    rpc("RepositoryModelLoad", protocol, async ({ repositoryName, modelName, parameters }) => {
      refuseRepositoryName(repositoryName);
      await service.loadModel(modelName, loadParameters(parameters));
      return {};
    }),
    rpc("RepositoryModelUnload", protocol, async ({ repositoryName, modelName, parameters }) => {
      refuseRepositoryName(repositoryName);
      await service.unloadModel(modelName, { unloadDependents: unloadsDependents(parameters) });
      return {};
    }),
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
