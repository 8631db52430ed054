import { mkdtempSync, rmSync } from "node:fs";
import {
  constants,
  copyFile,
  link,
  mkdir,
  mkdtemp,
  readFile,
  realpath,
  rename,
  rm,
  rmdir,
  stat,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import type { ImportOptions } from "@tritonjs/backends/optimize";
import { cleanUpAtExit, invalidOption } from "@tritonjs/perf/internal";
import { errorFor, type ModelConfig, TritonError } from "@tritonjs/protocol";
import { inspectRepository, readPrototxt } from "@tritonjs/repository/config";
import {
  type ConfigText,
  type ImportPlan,
  importedConfig,
  type PlannedFile,
  type PlannedModel,
  tensorTexts,
} from "./import-plan.js";
import { nameOfSource, planSource } from "./plan-source.js";

/** Options of `addModel`. */
export interface AddModelOptions extends ImportOptions {
  /** File or directory with the model. */
  readonly source: string;
  /** The model repository, which is made if it does not exist. */
  readonly repository: string;
  /** Name of the model that clients call. @default that of the file or directory */
  readonly name?: string;
  /** Version. A model that exists gets another version by another number. @default 1 */
  readonly version?: number;
  /** Precision of the graph of a directory of Hugging Face, as transformers.js names it. @default the first that is there */
  readonly dtype?: string;
  /** Path of the graph in a directory of Hugging Face. @default by `dtype` */
  readonly file?: string;
  /** Whether a text model takes two texts. @default true for cross-encoders */
  readonly pair?: boolean;
  /** Largest batch of a model that can batch; trees have 32,768. @default 32 */
  readonly maxBatchSize?: number;
  /** Hard links instead of copies. The model then changes with its source. @default false */
  readonly link?: boolean;
  /** Inspects the written models as a server does before it loads them. @default true */
  readonly check?: boolean;
  /** Plans, and writes nothing. @default false */
  readonly dryRun?: boolean;
  readonly signal?: AbortSignal;
  /** Called with a line of text for each step. */
  readonly onProgress?: (text: string) => void;
}

/** What `addModel` added, or would add. */
export interface AddedModel {
  /** The kind of the source. */
  readonly kind: string;
  /** Name of the model that clients call. */
  readonly name: string;
  readonly version: number;
  /** Names of all models: the steps of an ensemble, and the ensemble. */
  readonly models: readonly string[];
  /** Files of the repository, as paths in it. */
  readonly files: readonly string[];
  /** Text of `config.pbtxt` by model. Without `dryRun`, it is what a server completes and loads. */
  readonly configs: Readonly<Record<string, string>>;
  readonly notes: readonly string[];
}

/** Adds a model as `addModel` of the package says. */
export async function addTrainedModel(options: AddModelOptions): Promise<AddedModel> {
  const { source, repository, version = 1, maxBatchSize = 32 } = options;
  const name = options.name ?? nameOfSource(source);
  checkName(name);
  if (!Number.isSafeInteger(version) || version < 1)
    throw invalidOption(`version: expected a whole number of at least 1, got ${version}`);
  const converted = mkdtempSync(join(tmpdir(), "tritonjs-add-"));
  const forget = cleanUpAtExit(() => rmSync(converted, { recursive: true, force: true }));
  try {
    const plan = await planSource(source, converted, { ...options, name, maxBatchSize });
    const isNew = await checkPlace(repository, plan, version);
    options.signal?.throwIfAborted();
    const configs = options.dryRun === true ? undefined : await carryOut(plan, version, isNew, options);
    const written = ({ name: model, config }: PlannedModel) => importedConfig(model, plan.kind, config);
    return {
      kind: plan.kind,
      name,
      version,
      models: plan.models.map((model) => model.name),
      files: plan.models.flatMap((model) => pathsOf(model, version)),
      configs: configs ?? Object.fromEntries(plan.models.map((model) => [model.name, written(model)])),
      notes: plan.notes,
    };
  } finally {
    await rm(converted, { recursive: true, force: true });
    forget();
  }
}

function checkName(name: string): void {
  if (/^[\w-][\w.-]*$/.test(name)) return;
  throw invalidOption(`name: expected letters, digits, '_', '-' and '.', and no '.' in front, got '${name}'`);
}

function pathsOf({ name, versionFiles, files = [] }: PlannedModel, version: number): string[] {
  const inVersion = versionFiles.map(({ path }) => join(name, String(version), path));
  return [join(name, "config.pbtxt"), ...files.map(({ path }) => join(name, path)), ...inVersion];
}

/**
 * Checks that the models are new, or that this version of them is.
 *
 * @returns whether the models are new
 */
async function checkPlace(repository: string, { models }: ImportPlan, version: number): Promise<boolean> {
  const present: string[] = [];
  for (const { name } of models) if (await exists(join(repository, name))) present.push(name);
  if (present.length === 0) return true;
  for (const name of present) {
    const path = join(repository, name, String(version));
    if (!(await exists(path))) continue;
    const text = `cannot add version ${version} of model '${name}': '${path}' exists; choose another --name or --version`;
    throw errorFor("ALREADY_EXISTS", text);
  }
  const missing = models.find(({ name }) => !present.includes(name));
  if (missing === undefined) return false;
  throw errorFor(
    "ALREADY_EXISTS",
    `cannot add model '${models.at(-1)!.name}': '${join(repository, present[0]!)}' exists, and '${missing.name}' does not; ` +
      "choose another --name",
  );
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined;
}

/**
 * Writes the models into a hidden folder of the repository, which servers do not read, checks them there, and moves them
 * to their places.
 *
 * @returns the texts of the configurations
 */
async function carryOut(
  plan: ImportPlan,
  version: number,
  isNew: boolean,
  options: AddModelOptions,
): Promise<Record<string, string>> {
  const { repository } = options;
  const isMade = await makeFolder(repository);
  const draft = await written(join(repository, ".add-"), () => mkdtemp(join(repository, ".add-")));
  const forget = cleanUpAtExit(() => rmSync(draft, { recursive: true, force: true }));
  try {
    await writeModels(plan, draft, version, options);
    const configs = await checkModels(plan, draft, options);
    if (!isNew) await checkSameConfig(plan, draft, repository);
    options.signal?.throwIfAborted();
    await moveModels(plan, draft, repository, isNew ? undefined : version);
    return configs;
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    if (isMade) await rmdir(repository).catch(() => {});
    throw error;
  } finally {
    await rm(draft, { recursive: true, force: true });
    forget();
  }
}

async function makeFolder(repository: string): Promise<boolean> {
  const made = await written(repository, () => mkdir(repository, { recursive: true }));
  return made !== undefined;
}

async function writeModels(
  { kind, models }: ImportPlan,
  draft: string,
  version: number,
  options: AddModelOptions,
): Promise<void> {
  for (const { name, config, versionFiles, files = [] } of models) {
    const folder = join(draft, name);
    const inVersion = join(folder, String(version));
    await written(folder, () => mkdir(inVersion, { recursive: true }));
    for (const file of versionFiles) await writePlanned(file, inVersion, options);
    for (const file of files) await writePlanned(file, folder, options);
    await written(join(folder, "config.pbtxt"), () =>
      writeFile(join(folder, "config.pbtxt"), importedConfig(name, kind, config)),
    );
  }
}

async function writePlanned(
  file: PlannedFile,
  folder: string,
  { link: links = false, signal, onProgress }: AddModelOptions,
): Promise<void> {
  signal?.throwIfAborted();
  const target = join(folder, file.path);
  await written(target, () => mkdir(dirname(target), { recursive: true }));
  if ("content" in file) await written(target, () => writeFile(target, file.content));
  else if ("write" in file) await file.write(target);
  else {
    onProgress?.(`${links ? "linking" : "copying"} ${file.from}`);
    // A cache of Hugging Face consists of symbolic links, and a link to one would be no file.
    const from = await realpath(file.from).catch((error: Error) => {
      throw errorFor("FILE_NOT_READABLE", `cannot read '${file.from}': ${error.message}`, { cause: error });
    });
    const put = () => (links ? link(from, target) : copyFile(from, target, constants.COPYFILE_FICLONE));
    await written(target, put, links ? "; without --link, the file is copied" : "");
  }
}

/** @throws TritonError UNAVAILABLE with the path and the system's reason */
async function written<T>(path: string, write: () => Promise<T>, advice = ""): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (TritonError.is(error)) throw error;
    const text = `cannot write '${resolve(path)}': ${(error as Error).message}${advice}`;
    throw errorFor("FILE_NOT_WRITTEN", text, { cause: error });
  }
}

/** Inspects the written models, and adds to their configurations what a server would complete. */
async function checkModels(
  plan: ImportPlan,
  draft: string,
  { check = true, onProgress }: AddModelOptions,
): Promise<Record<string, string>> {
  const texts = Object.fromEntries(
    plan.models.map(({ name, config }) => [name, importedConfig(name, plan.kind, config)]),
  );
  if (!check) return texts;
  onProgress?.("checking the models");
  for (const { name, config, findings } of await inspectRepository([draft])) {
    const fault = findings.find(({ severity }) => severity === "error");
    if (fault !== undefined) {
      const text = fault.message.replaceAll(`${draft}/`, "");
      throw errorFor("INVALID_MODEL", `cannot add model '${name}': ${text}; --no-check adds it nevertheless`);
    }
    const planned = plan.models.find((model) => model.name === name);
    if (planned === undefined || config === undefined) continue;
    const completed = withTensors(planned.config, config);
    if (completed === planned.config) continue;
    texts[name] = importedConfig(name, plan.kind, completed);
    await writeFile(join(draft, name, "config.pbtxt"), texts[name]!);
  }
  return texts;
}

/** Backends whose tensors are always the same, so that no configuration has to list them. */
const KNOWN_TENSORS = ["text_generation", "llamacpp"];

function withTensors(planned: ConfigText, { input, output, maxBatchSize }: ModelConfig): ConfigText {
  if (planned.input !== undefined || KNOWN_TENSORS.includes(planned.backend ?? "")) return planned;
  const tensors = { input: tensorTexts(input), output: tensorTexts(output) };
  return { ...planned, ...tensors, ...(planned.maxBatchSize !== undefined && { maxBatchSize }) };
}

/** A version has to fit the configuration of its model, which stays as it is. */
async function checkSameConfig({ models }: ImportPlan, draft: string, repository: string): Promise<void> {
  for (const { name } of models) {
    const read = async (path: string) => {
      const text = await readFile(path, "utf8").catch(() => undefined);
      return text === undefined ? undefined : signatureOf(readPrototxt(text, path));
    };
    const present = await read(join(repository, name, "config.pbtxt"));
    const added = await read(join(draft, name, "config.pbtxt"));
    if (present === undefined || present === added) continue;
    throw errorFor(
      "INVALID_MODEL",
      `cannot add a version of model '${name}': expected ${present}, as its config.pbtxt has, got ${added}; choose another --name`,
    );
  }
}

/** What all versions of a model share. */
function signatureOf({ backend, platform, input, output }: ModelConfig): string {
  const tensors = (list: ModelConfig["input"] | ModelConfig["output"]) =>
    list.map(({ name, dataType, dims }) => `${name} ${dataType} [${dims}]`).join(", ");
  return `${backend || platform} with the inputs ${tensors(input)} and the outputs ${tensors(output)}`;
}

/** Moves the models, steps first: a server that polls finds an ensemble only when its steps are there. */
async function moveModels(
  { models }: ImportPlan,
  draft: string,
  repository: string,
  version: number | undefined,
): Promise<void> {
  const moved: string[] = [];
  const part = version === undefined ? "" : String(version);
  try {
    for (const { name } of models) {
      const target = join(repository, name, part);
      await rename(join(draft, name, part), target);
      moved.push(target);
    }
  } catch (error) {
    for (const target of moved.reverse()) await rm(target, { recursive: true, force: true });
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOTEMPTY" || code === "EEXIST") {
      throw errorFor("ALREADY_EXISTS", `cannot add the model: another one appeared meanwhile: ${message}`, {
        cause: error,
      });
    }
    throw errorFor("FILE_NOT_WRITTEN", `cannot write the model: ${message}`, { cause: error });
  }
}
