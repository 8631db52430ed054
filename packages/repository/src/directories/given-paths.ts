import { realpath } from "node:fs/promises";
import { isAbsolute, join, resolve, sep } from "node:path";
import type { BackendFactory, ParameterTable, ParameterUse } from "@tritonjs/core/backend";
import { MODEL_DIRECTORY, SHARED_PARAMETERS, useOf } from "@tritonjs/core/internal";
import { isInside, linkedDirectories } from "@tritonjs/core/internal/worker";
import { errorFor, type ModelConfig, type TritonError } from "@tritonjs/protocol";

/*
 * What a configuration may name that came over the network. Nobody has allowed its author to open, run or write files
 * beside those of the model repository.
 */

/** Where the files of a model are. */
export interface ModelPlaces {
  /** Path of the repository, which has the directory of the model, unless a copy or an agent's replacement is in use. */
  readonly repository: string;
  readonly directory: string;
  /** Directory of the version; that of the model where no version is known yet. */
  readonly versionDirectory: string;
  /** Settings of the backend, which may allow directories that links lead to. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** A text of a configuration that may name a path. */
interface GivenText {
  /** Description for errors, which also tells texts apart. */
  readonly what: string;
  readonly text: string;
  readonly use: ParameterUse | undefined;
}

/**
 * Refuses a configuration whose parameters name paths outside of the model repository, places to write or addresses,
 * by the table of its backend. Texts that the operator's own configuration has too are allowed.
 *
 * @param operator the configuration that the model would have without the request
 * @param extensions parameters that extensions of the server read
 * @throws TritonError INVALID_ARG that names the parameter, what was expected and what came
 */
export async function assertGivenPaths(
  config: ModelConfig,
  operator: ModelConfig | undefined,
  factory: Declaring,
  places: ModelPlaces,
  extensions: ParameterTable = {},
): Promise<void> {
  const isSame = operator !== undefined && backendOf(operator) === backendOf(config);
  const table = { ...SHARED_PARAMETERS.own, ...extensions, ...factory.parameters };
  const texts = (of: ModelConfig) => [...parameterTexts(of, table), ...acceleratorTexts(of, factory)];
  await assertAllowed(config.name, texts(config), isSame ? texts(operator) : [], places);
}

/** Like {@link assertGivenPaths} for the parameters of repository agents, which declare none. */
export async function assertGivenAgents(
  name: string,
  config: ModelConfig,
  operator: ModelConfig | undefined,
  places: ModelPlaces,
): Promise<void> {
  await assertAllowed(name, agentTexts(config), operator === undefined ? [] : agentTexts(operator), places);
}

const backendOf = ({ backend, platform }: ModelConfig) => backend || platform;

/** Tables of what parameters name. An ensemble has none. */
type Declaring = Pick<BackendFactory, "parameters" | "acceleratorParameters">;

function parameterTexts({ parameters }: ModelConfig, table: ParameterTable): GivenText[] {
  return Object.entries(parameters).map(([name, { stringValue }]) => ({
    what: `parameter '${name}'`,
    text: stringValue,
    use: useOf(table, name),
  }));
}

function acceleratorTexts({ optimization }: ModelConfig, factory: Declaring): GivenText[] {
  const { gpuExecutionAccelerator = [], cpuExecutionAccelerator = [] } =
    optimization?.executionAccelerators ?? {};
  return [...gpuExecutionAccelerator, ...cpuExecutionAccelerator].flatMap(({ name, parameters = {} }) =>
    Object.entries(parameters).map(([option, text]) => ({
      what: `parameter '${option}' of execution accelerator '${name}'`,
      text,
      use: useOf(factory.acceleratorParameters ?? {}, option),
    })),
  );
}

function agentTexts({ modelRepositoryAgents }: ModelConfig): GivenText[] {
  return (modelRepositoryAgents?.agents ?? []).flatMap(({ name, parameters = {} }) =>
    Object.entries(parameters).flatMap(([key, text]) => [
      { what: `parameter '${key}' of repository agent '${name}'`, text, use: undefined },
      // The agent `checksum` has files in its keys.
      { what: `name of parameter '${key}' of repository agent '${name}'`, text: key, use: undefined },
    ]),
  );
}

/** What a text must be to be allowed over the network, for errors. */
const EXPECTED: Readonly<Record<Exclude<ParameterUse, "value"> | "undeclared", string>> = {
  read: "a path inside the model repository",
  execute: "an absolute path inside the model repository",
  write: "no file or directory to write",
  connect: "no address",
  undeclared: "no path outside of the model repository",
};

async function assertAllowed(
  model: string,
  given: readonly GivenText[],
  allowed: readonly GivenText[],
  places: ModelPlaces,
): Promise<void> {
  for (const { what, text, use } of given) {
    if (await isHarmless(text, use, places)) continue;
    if (allowed.some((one) => one.what === what && one.text === text)) continue;
    throw notAllowed(model, what, EXPECTED[use === "value" ? "undeclared" : (use ?? "undeclared")], text);
  }
}

const MOST_SHOWN = 200;

function notAllowed(model: string, what: string, expected: string, text: string): TritonError {
  const got = text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}...` : text;
  return errorFor(
    "LOAD_PATH_NOT_ALLOWED",
    `${what} of model '${model}': expected ${expected} in a configuration that came over the network, got '${got}'. ` +
      "Write it into the configuration in the repository, or start the server with '--allow-model-file-override=true'.",
  );
}

async function isHarmless(
  text: string,
  use: ParameterUse | undefined,
  places: ModelPlaces,
): Promise<boolean> {
  if (use === "value") return true;
  if (use === "write" || use === "connect") return text === "";
  if (use === undefined) return leadsNowhere(text, places);
  if (isForeign(text.trim())) return false;
  if (use === "read") return isReadable(expanded(text.trim(), places), places);
  const path = expanded(text, places);
  return isAbsolute(path) && (await isInRepository(path, places));
}

/** Whether a path to read stays in the repository, wherever the backend looks for it. */
async function isReadable(path: string, places: ModelPlaces): Promise<boolean> {
  const bases = isAbsolute(path) ? [""] : [places.versionDirectory, places.directory];
  for (const base of bases) if (!(await isInRepository(join(base, path), places))) return false;
  return true;
}

const expanded = (text: string, { directory }: ModelPlaces) => text.replace(MODEL_DIRECTORY, () => directory);

/** Whether a text is not a plain path of this system: a URL, a path of another system or of a home, or one with a NUL. */
function isForeign(text: string): boolean {
  const isWindows = sep === "\\";
  if (text.includes("\0") || text.startsWith("~")) return true;
  if (isWindows && /^[a-z]:[\\/]/i.test(text)) return false;
  return /^[a-z][a-z\d+.-]*:/i.test(text) || (!isWindows && text.includes("\\"));
}

/** URLs, paths of Windows and variables, anywhere in a text. */
const ELSEWHERE = /\w{2,}:\/\/|\bfile:|(^|\W)[a-z]:[\\/]|\\\\|\0|\$\{?\w+\}?[\\/]|%\w+%[\\/]/i;

/** Where a text may have a path among other words. */
const BETWEEN_WORDS = /[\s,;:="'`()[\]{}|&<>@]+/;

/**
 * Whether a text whose meaning is unknown names no path outside of the repository: no word of it is absolute or goes
 * up, and it is not the name of a link that leads out.
 */
async function leadsNowhere(given: string, places: ModelPlaces): Promise<boolean> {
  const text = expanded(given, places);
  if (ELSEWHERE.test(given.replace(MODEL_DIRECTORY, ""))) return false;
  for (const word of text.split(BETWEEN_WORDS)) {
    const leads = /^[/\\~]/.test(word) || word.split(/[\\/]/).includes("..");
    if (leads && !(isAbsolute(word) && (await isInRepository(word, places)))) return false;
  }
  return isAbsolute(text) || isReadable(text, places);
}

/** Whether a path is in the repository, by its text and where links lead. A missing file is: opening it will fail. */
async function isInRepository(path: string, { repository, directory, settings = {} }: ModelPlaces) {
  const isCopy = !isInside(repository, directory);
  const roots = isCopy ? [directory] : [directory, resolve(repository)];
  if (!roots.some((root) => isInside(root, path))) return false;
  const target = await realpath(path).catch(() => undefined);
  if (target === undefined) return true;
  for (const root of [...roots, ...linkedDirectories(settings)]) {
    const real = await realpath(root).catch(() => undefined);
    if (real !== undefined && isInside(real, target)) return true;
  }
  return false;
}
