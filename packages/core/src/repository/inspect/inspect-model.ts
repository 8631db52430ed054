import { basename, join } from "node:path";
import { type ModelConfig, TritonError } from "@tritonjs/protocol";
import { parsePrototxt } from "../../config/prototxt/read-prototxt.js";
import { fieldProblems } from "../../config/schema/field-support.js";
import { validateModelIo } from "../../config/validation/validate-model-io.js";

import { dataFilesOf } from "../../files/data-file.js";
import { assertInside } from "../../files/path-containment.js";
import { exists, readSmallFile } from "../../files/read-small-file.js";
import { Log } from "../../observe/log/log.js";
import { configOfOpenModel, type PlanContext, planVersion } from "../create-version.js";
import { contents, subdirectories } from "../layout/list-directory.js";
import { readVersionDirectories, versionsToLoad } from "../layout/versions-to-load.js";
import { configPathOf, type PolledModel, pollModel } from "../poll-model.js";
import { type Finding, Findings } from "./finding.js";

/** A model of a repository as it is on disk. None of it runs. */
export interface InspectedModel {
  readonly name: string;
  readonly directory: string;
  /** Its configuration file, which may be missing. */
  readonly configPath: string;
  readonly findings: Findings;
  /** The configuration before the model's file is read; undefined if it is rejected before that. */
  readonly polled?: PolledModel;
  /** Versions that would be served. */
  readonly versions?: readonly number[];
  /** The completed configuration; undefined for a model that cannot be served. */
  readonly config?: ModelConfig;
}

/** The context of an inspection. */
export interface InspectContext extends Omit<PlanContext, "log"> {
  readonly modelConfigName: string | undefined;
}

/** Makes all checks that loading a model makes, and continues where loading would stop. */
export async function inspectModel(
  root: string,
  name: string,
  context: InspectContext,
): Promise<InspectedModel> {
  const directory = join(root, name);
  const configPath = await configPathOf(directory, context.modelConfigName);
  const findings = new Findings();
  const model = { name, directory, configPath, findings };
  const log = logTo(findings, configPath);
  try {
    await assertInside(root, directory);
    await inspectNames(directory, configPath, findings);
    const readable = await inspectText(configPath, name, findings);
    if (!readable) return model;
    const id = { namespace: "", name };
    const target = { id, repository: root, root, directory, previous: undefined, explicit: true };
    const polled = await pollModel(target, { ...context, log });
    const versions = await versionsOf(polled, configPath, findings);
    const config = await inspectVersions(polled, versions, { ...context, log }, findings);
    inspectWarmup(polled, configPath, findings);
    return { ...model, polled, versions, ...(config === undefined ? {} : { config }) };
  } catch (error) {
    findings.addLines("error", configPath, TritonError.from(error).message);
    return model;
  }
}

/** Reports names in the directory that are nearly right. */
async function inspectNames(directory: string, configPath: string, findings: Findings): Promise<void> {
  for (const line of readVersionDirectories(await subdirectories(directory)).ignored) {
    findings.add({ severity: "warning", path: directory, message: line });
  }
  if (await exists(configPath)) return;
  for (const name of await contents(directory)) {
    if (!/^config\.\w+(\.txt)?$/i.test(name)) continue;
    const message = `'${name}' is ignored: the configuration is '${basename(configPath)}'`;
    findings.add({ severity: "warning", path: join(directory, name), message });
  }
}

/** Reports all faults of the text. Returns false when there are any. */
async function inspectText(path: string, name: string, findings: Findings): Promise<boolean> {
  if (!(await exists(path))) return true;
  const { config, errors } = parsePrototxt(await readSmallFile(path));
  for (const { line, column, text, field } of errors) {
    const message = field === "" ? text : `${text} (field '${field}')`;
    findings.add({ severity: "error", path, line, column, message });
  }
  // These fields have to be removed in any case.
  if (errors.length === 0) {
    for (const problem of fieldProblems({ ...config, name })) {
      findings.add({ severity: "error", path, message: problem });
    }
  }
  return errors.length === 0;
}

/** The existing versions that the policy chooses. */
async function versionsOf(
  { id, directory, config }: PolledModel,
  configPath: string,
  findings: Findings,
): Promise<readonly number[]> {
  const found = readVersionDirectories(await subdirectories(directory));
  const { versions, missing } = versionsToLoad(found.versions, config.versionPolicy ?? {});
  for (const version of missing) {
    const message = `version ${version} is specified for model '${id.name}', but the version directory is not present`;
    findings.add({ severity: "warning", path: configPath, message });
  }
  if (versions.length === 0) {
    const message = `at least one version must be available under the version policy of model '${id.name}'`;
    findings.add({ severity: "error", path: directory, message });
  }
  return versions;
}

/** Inspects each version that would be served. @returns the configuration of the first valid version */
async function inspectVersions(
  polled: PolledModel,
  versions: readonly number[],
  context: PlanContext,
  findings: Findings,
): Promise<ModelConfig | undefined> {
  const configs: ModelConfig[] = [];
  for (const version of versions) {
    try {
      configs.push(await configOf(polled, version, context));
    } catch (error) {
      const path = join(polled.directory, String(version));
      findings.addLines("error", path, TritonError.from(error).message);
      // The written configuration of a model is checked even if its file cannot be read.
      const { input, output } = polled.config;
      if (input.length === 0 || output.length === 0) continue;
      for (const problem of validateModelIo(polled.config)) findings.addLines("error", path, problem);
    }
  }
  return configs[0];
}

/**
 * The configuration of the version, completed from its file. If that configuration is rejected, the model is opened, as
 * loading would do: the outputs declared by the file may differ from those that the model makes.
 */
async function configOf(polled: PolledModel, version: number, context: PlanContext): Promise<ModelConfig> {
  try {
    return (await planVersion(polled, version, context)).config;
  } catch (error) {
    const quiet = new Log({ error() {}, warn() {}, info() {}, debug() {} });
    return await configOfOpenModel(polled, version, { ...context, log: quiet }).catch((whenOpen) => {
      // If the model's runtime is not installed, the error from the file is reported.
      throw TritonError.from(whenOpen).code === "UNAVAILABLE" ? error : whenOpen;
    });
  }
}

function inspectWarmup({ directory, config }: PolledModel, configPath: string, findings: Findings): void {
  const read = dataFilesOf(directory, "warmup");
  for (const { name, inputs } of config.modelWarmup) {
    for (const [input, { inputDataFile }] of Object.entries(inputs)) {
      if (inputDataFile === undefined || inputDataFile === "") continue;
      try {
        read(inputDataFile);
      } catch (error) {
        const message = `warmup sample '${name}': cannot read the data of input '${input}': ${TritonError.from(error).message}`;
        findings.add({ severity: "error", path: configPath, message });
      }
    }
  }
}

function logTo(findings: Findings, path: string): Log {
  const add = (severity: Finding["severity"]) => (message: string) =>
    findings.addLines(severity, path, message);
  return new Log({ error: add("error"), warn: add("warning"), info: () => {}, debug: () => {} });
}
