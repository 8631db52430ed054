import { readFileSync } from "node:fs";
import type { Extension } from "@tritonjs/core/extension";
import {
  type BackendConfig,
  type RepositoryOptions,
  readSubstitutes,
  repository,
} from "@tritonjs/repository";
import type { CommandAdditions } from "../command-context.js";
import { creating } from "../options/option.js";
import type { OptionValues } from "../options/options.js";
import { type ClassModels, classModels, repositoryPaths } from "./class-models.js";

/** The extension for the models of directories. @throws OptionError as {@link repositorySettings} and {@link classModels} */
export async function openRepository(
  values: OptionValues,
  { backends }: CommandAdditions,
): Promise<Extension> {
  const settings = repositorySettings(values, await classModels(values.model));
  return repository({ ...settings, ...(backends !== undefined && { backends }) });
}

/**
 * The options of the model repositories that the command line requests.
 *
 * @throws OptionError without a repository, and for rules of substitutes that cannot be read or have faults
 */
export function repositorySettings(
  values: OptionValues,
  { repository: ofModels, modelFormats }: ClassModels = { repository: undefined, modelFormats: [] },
): RepositoryOptions {
  const repositories = [...repositoryPaths(values), ...(ofModels === undefined ? [] : [ofModels])];
  // The models of a multi-model endpoint are registered when the platform loads them.
  if (repositories.length === 0 && !values["sagemaker-multi-model"]) {
    throw creating("Invalid argument - --model-repository must be specified");
  }
  return {
    modelRepository: repositories,
    ...(modelFormats.length > 0 && { modelFormats }),
    modelControlMode: values["model-control-mode"],
    // A shorter interval would poll without a pause.
    repositoryPollSecs: Math.max(1, values["repository-poll-secs"]),
    loadModel: [...new Set(values["load-model"])],
    ...(values["model-config-name"] !== "" && { modelConfigName: values["model-config-name"] }),
    disableAutoCompleteConfig:
      values["disable-auto-complete-config"] || values["strict-model-config"] === true,
    modelLoadThreadCount: Math.max(1, values["model-load-thread-count"]),
    modelLoadRetryCount: Math.max(0, values["model-load-retry-count"]),
    modelNamespacing: values["model-namespacing"],
    exitOnError: values["exit-on-error"],
    ...(values.substitute !== "" && { substitutes: substitutes(values.substitute) }),
    backendConfig: backendSettings(values),
    ...(values["backend-directory"] !== "" && { backendDirectory: values["backend-directory"] }),
    ...(values["repoagent-directory"] !== "" && { repositoryAgentDirectory: values["repoagent-directory"] }),
    repositoryAgentTimeoutSecs: values["repoagent-timeout-secs"],
    allowModelFileOverride: values["allow-model-file-override"] || values.compat === "triton",
  };
}

function backendSettings(values: OptionValues): BackendConfig {
  const settings: Record<string, Record<string, string>> = {};
  for (const { name, key, value } of values["backend-config"]) {
    settings[name] = { ...settings[name], [key]: value };
  }
  return settings;
}

/** The rules in a file. @throws OptionError for a file that cannot be read or has faults */
function substitutes(path: string): RepositoryOptions["substitutes"] {
  try {
    return readSubstitutes(JSON.parse(readFileSync(path, "utf8")), path);
  } catch (error) {
    throw creating(`Invalid argument - --substitute: ${(error as Error).message}`);
  }
}
