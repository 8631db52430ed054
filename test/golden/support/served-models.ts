import { setTimeout as sleep } from "node:timers/promises";
import type { TensorSpec, Triton } from "@tritonjs/core";
import { fromConfigDataType } from "@tritonjs/protocol";
import { type Behaviour, identity, toInferFunc } from "./behaviours/behaviour.js";
import { decoupledBehaviours, toDecoupledFunc } from "./behaviours/decoupled.js";
import { type ParsedConfig, parseConfigText } from "./config-text.js";
import { featuresOf, type ModelFeature } from "./feature.js";

/** A model as the recordings describe it. */
export interface RecordedModel {
  readonly config_pbtxt: string;
  readonly versions?: readonly number[];
  /** Its behaviour, in words. */
  readonly behaviour?: string;
  /** Further files of its directory by name. */
  readonly files?: Readonly<Record<string, string>>;
  readonly repository?: "explicit";
}

/** A recorded model, parsed. */
export interface PlayableModel {
  readonly name: string;
  readonly config: ParsedConfig;
  /** Versions that its policy serves. */
  readonly versions: readonly number[];
  readonly features: ReadonlySet<ModelFeature>;
  /** Names of the classes of outputs that have a label file. */
  readonly labels: ReadonlyMap<string, readonly string[]>;
}

/** All models of a recording by name. */
export type Models = ReadonlyMap<string, PlayableModel>;

/** Reads the models of a recording. */
export function readModels(models: Readonly<Record<string, RecordedModel>>): Models {
  return new Map(
    Object.entries(models).map(([name, { config_pbtxt: text, versions = [1], files = {} }]) => {
      const config = parseConfigText(text, name);
      const features = featuresOf(config);
      return [
        name,
        { name, config, versions: served(config, versions), features, labels: labels(config, files) },
      ];
    }),
  );
}

function labels(config: ParsedConfig, files: Readonly<Record<string, string>>): Map<string, string[]> {
  const labelled = (config.output ?? []).filter((output) => output.labelFilename !== "");
  return new Map(
    labelled.map((output) => [
      output.name,
      (files[output.labelFilename] ?? "").replace(/\n$/, "").split("\n"),
    ]),
  );
}

function served({ versionPolicy }: ParsedConfig, versions: readonly number[]): readonly number[] {
  if (versionPolicy?.all !== undefined) return versions;
  const { specific, latest } = versionPolicy ?? {};
  if (specific !== undefined) return versions.filter((version) => specific.versions.includes(version));
  return [...versions].sort((a, b) => a - b).slice(-(latest?.numVersions ?? 1));
}

/**
 * Binds every model, each version separately; models without a behaviour are identities.
 * @param wait how models pass time
 */
export function bindModels(
  triton: Triton,
  models: Models,
  behaviours: Readonly<Record<string, Behaviour>>,
  wait: (ms: number) => Promise<void> = async (ms) => void (await sleep(ms)),
): void {
  for (const model of models.values()) {
    const { name, config } = model;
    for (const version of model.versions) {
      if (model.features.has("ensemble")) {
        triton.bindEnsemble({ modelName: name, modelVersion: version, modelConfig: config });
        continue;
      }
      const played = {
        version,
        inputNames: (config.input ?? []).map((input) => input.name),
        outputNames: (config.output ?? []).map((output) => output.name),
        sleep: wait,
      };
      const decoupled = model.features.has("decoupled") ? decoupledBehaviours[name] : undefined;
      const inferFunc = decoupled
        ? toDecoupledFunc(decoupled, played)
        : toInferFunc(behaviours[name] ?? identity, played);
      triton.bind({
        modelName: name,
        modelVersion: version,
        inferFunc: inferFunc as never,
        outputs: labelledOutputs(model),
        modelConfig: config,
      });
    }
  }
}

/** Outputs as `bind` accepts them: label files have no place in a configuration without a repository. */
function labelledOutputs({ config, labels }: PlayableModel): TensorSpec[] {
  return (config.output ?? []).map(({ name, dataType, dims }) => ({
    name,
    dtype: fromConfigDataType(dataType) ?? "BYTES",
    shape: dims,
    labels: labels.get(name),
  }));
}
