import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { closestName } from "@tritonjs/protocol";
import { OptionError } from "./option.js";
import {
  allOptions,
  checkOptions,
  findOption,
  type GivenOptions,
  type ReadOptions,
  readOptions,
} from "./options.js";

/**
 * Reads the options of `tritonjs serve`: those of the command line, then those of the environment, then those of
 * configuration files.
 *
 * @throws OptionError for an invalid command line.
 */
export function readArguments(args: readonly string[], environment: NodeJS.ProcessEnv): ReadOptions {
  const needsValue = (name: string) => findOption(name)?.argument !== undefined;
  const given = readNames(args, Object.keys(allOptions), needsValue);
  const variables = readEnvironment(environment);
  const files = given.some(isConfig) ? given.filter(isConfig) : variables.filter(isConfig);
  const sources = [...files.map(([, path]) => readConfigFile(path)), variables, given];
  const hasRepository = sources
    .flat()
    .some(([name]) => name === "model-repository" || name === "model-store");
  const platform = cloudEnvironment(environment, hasRepository).map(known);
  const read = readOptions([platform, ...sources]);
  checkOptions(read);
  return read;
}

/** @throws OptionError for an option that does not exist. */
function known(option: GivenOptions[number]): GivenOptions[number] {
  const [name] = option;
  if (findOption(name) !== undefined) return option;
  throw new OptionError(`SAGEMAKER_TRITON_ADDITIONAL_ARGS: unrecognized option '--${name}'`, "alone");
}

function isConfig([name]: GivenOptions[number]): boolean {
  return name === "config";
}

/**
 * Reads the options of a JSON file: an object of values by option name, with a list for an option that may be given
 * several times.
 */
function readConfigFile(path: string): GivenOptions {
  const fail = (reason: string) => new OptionError(`configuration file '${path}': ${reason}`, "alone");
  const content = parse(path, fail);
  if (typeof content !== "object" || content === null || Array.isArray(content)) {
    throw fail("expected an object of options");
  }
  return Object.entries(content).flatMap(([name, value]) => {
    if (findOption(name) === undefined || name === "config") {
      const meant = closestName(name, Object.keys(allOptions));
      throw fail(`unknown option '${name}'${meant === undefined ? "" : `; did you mean '${meant}'?`}`);
    }
    return (Array.isArray(value) ? value : [value]).map((each): [string, string] => {
      if (["string", "number", "boolean"].includes(typeof each)) return [name, String(each)];
      throw fail(`option '${name}': expected text, a number or a boolean`);
    });
  });
}

function parse(path: string, fail: (reason: string) => OptionError): unknown {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    throw fail((error as Error).message);
  }
}

/**
 * Reads the options of the environment: TRITONJS_HTTP_PORT for --http-port. Several values are on separate lines. An
 * empty variable is ignored.
 */
function readEnvironment(environment: NodeJS.ProcessEnv): GivenOptions {
  return Object.keys(allOptions).flatMap((name) => {
    const value = environment[`TRITONJS_${name.toUpperCase().replaceAll("-", "_")}`];
    return value === undefined || value === ""
      ? []
      : value.split("\n").map((line): [string, string] => [name, line]);
  });
}

/** A long option, with its value if it has one. */
const LONG_OPTION = /^--([^=]+)(?:=([\s\S]*))?$/;

/** Reads options. Like `getopt_long`, it allows a prefix of a name that belongs to one option only. */
function readNames(
  args: readonly string[],
  names: readonly string[],
  needsValue: (name: string) => boolean,
): GivenOptions {
  const given: [string, string][] = [];
  let unexpected: string | undefined;
  for (let index = 0; index < args.length; index++) {
    const argument = args[index]!;
    const [, short, text] = LONG_OPTION.exec(argument) ?? [];
    if (short === undefined) {
      if (argument !== "--" && /^-./.test(argument)) throw getopt(`unrecognized option '${argument}'`);
      unexpected ??= argument;
      if (argument === "--") break;
      continue;
    }
    const name = fullName(short, argument, names);
    if (!needsValue(name) && text !== undefined) throw getopt(`option '--${name}' doesn't allow an argument`);
    const value = needsValue(name) ? (text ?? args[++index]) : "";
    if (value === undefined) throw getopt(`option '--${name}' requires an argument`);
    given.push([name, value]);
  }
  if (unexpected !== undefined) throw new OptionError(`Unexpected argument: ${unexpected}`);
  return given;
}

function fullName(short: string, argument: string, names: readonly string[]): string {
  if (names.includes(short)) return short;
  const candidates = names.filter((name) => name.startsWith(short));
  if (candidates.length === 1) return candidates[0]!;
  if (candidates.length === 0) {
    const text = `tritonjs: unrecognized option '${argument}'`;
    const meant = closestName(short, names);
    // The usage would push the proposal off the screen.
    if (meant !== undefined) throw new OptionError(`${text}\nDid you mean '--${meant}'?`, "alone");
    throw new OptionError(text, "before usage");
  }
  const possibilities = candidates.map((name) => `'--${name}'`).join(" ");
  throw getopt(`option '--${short}' is ambiguous; possibilities: ${possibilities}`);
}

function getopt(text: string): OptionError {
  return new OptionError(`tritonjs: ${text}`, "before usage");
}

/** Where SageMaker puts the model of an endpoint. */
const SAGEMAKER_MODEL = "/opt/ml/model";

/** Options that a variable of SageMaker gives, in the words of the script `serve` in Triton's image. */
const SAGEMAKER_OPTIONS = {
  SAGEMAKER_BIND_TO_PORT: "sagemaker-port",
  SAGEMAKER_SAFE_PORT_RANGE: "sagemaker-safe-port-range",
  SAGEMAKER_TRITON_METRICS_PORT: "metrics-port",
  SAGEMAKER_TRITON_GRPC_PORT: "grpc-port",
  SAGEMAKER_TRITON_BUFFER_MANAGER_THREAD_COUNT: "buffer-manager-thread-count",
  SAGEMAKER_TRITON_THREAD_COUNT: "sagemaker-thread-count",
  SAGEMAKER_TRITON_LOG_INFO: "log-info",
  SAGEMAKER_TRITON_LOG_WARNING: "log-warning",
  SAGEMAKER_TRITON_LOG_ERROR: "log-error",
  SAGEMAKER_TRITON_LOG_VERBOSE: "log-verbose",
} as const;

/** Options that a variable gives on every machine: tritonserver itself reads these, and not the script of an image. */
const SERVER_OPTIONS = {
  AIP_HTTP_PORT: "vertex-ai-port",
  AIP_PREDICT_ROUTE: "vertex-ai-predict-route",
  AIP_HEALTH_ROUTE: "vertex-ai-health-route",
  SAGEMAKER_TRITON_DEFAULT_MODEL_NAME: "sagemaker-default-model",
  SAGEMAKER_TRITON_INFERENCE_TYPE: "sagemaker-inference-type",
  SAGEMAKER_TRITON_PING_MODE: "sagemaker-ping-mode",
} as const;

function namedBy(
  environment: NodeJS.ProcessEnv,
  options: Readonly<Record<string, string>>,
): [string, string][] {
  return Object.entries(options).flatMap(([variable, option]): [string, string][] => {
    const text = environment[variable];
    return text ? [[option, text]] : [];
  });
}

/**
 * The options that the environment of a cloud platform asks for. Variables that tritonserver itself reads count on every
 * machine. Vertex AI is recognised by `AIP_MODE`, SageMaker by a variable of its own image or by a model in its directory.
 * The options come after all other sources, so the command `serve` alone starts the image on both platforms.
 *
 * @param hasRepository whether another source names a model repository; SageMaker's does not count then
 * @throws OptionError for a directory that SageMaker could not have meant, with Triton's text.
 */
export function cloudEnvironment(
  environment: NodeJS.ProcessEnv,
  hasRepository: boolean,
  modelDirectory = SAGEMAKER_MODEL,
): GivenOptions {
  const given = [...vertexAi(environment), ...namedBy(environment, SERVER_OPTIONS)];
  if (isVertexAi(environment) || hasRepository || !isSageMaker(environment, modelDirectory)) return given;
  const { SAGEMAKER_TRITON_ADDITIONAL_ARGS: more = "" } = environment;
  return [...given, ...sageMaker(environment, modelDirectory), ...additional(more)];
}

function isVertexAi({ AIP_MODE }: NodeJS.ProcessEnv): boolean {
  return AIP_MODE === "PREDICTION";
}

function vertexAi(environment: NodeJS.ProcessEnv): [string, string][] {
  const models = namedBy(environment, { AIP_STORAGE_URI: "model-repository" });
  if (!isVertexAi(environment)) return models;
  return [["allow-vertex-ai", "true"], ["allow-http", "false"], ["allow-grpc", "false"], ...models];
}

function isSageMaker(environment: NodeJS.ProcessEnv, modelDirectory: string): boolean {
  const signs = Object.keys(environment).some((name) =>
    /^SAGEMAKER_(TRITON_|MULTI_MODEL$|BIND_TO_PORT$)/.test(name),
  );
  return signs || isDirectory(modelDirectory);
}

function sageMaker(environment: NodeJS.ProcessEnv, modelDirectory: string): [string, string][] {
  const isMultiModel = environment.SAGEMAKER_MULTI_MODEL === "true";
  const given: [string, string][] = [
    ["allow-sagemaker", "true"],
    ["allow-http", "false"],
    ["allow-grpc", environment.SAGEMAKER_TRITON_ALLOW_GRPC || "false"],
    ["allow-metrics", environment.SAGEMAKER_TRITON_ALLOW_METRICS || "false"],
    ["model-control-mode", "explicit"],
    ["model-namespacing", environment.SAGEMAKER_TRITON_DISABLE_MODEL_NAMESPACING || "true"],
    [
      "sagemaker-ping-mode",
      environment.SAGEMAKER_TRITON_OVERRIDE_PING_MODE || (isMultiModel ? "live" : "ready"),
    ],
  ];
  given.push(...namedBy(environment, SAGEMAKER_OPTIONS));
  if (isMultiModel) return [...given, ["sagemaker-multi-model", "true"]];
  const model = defaultModel(environment.SAGEMAKER_TRITON_DEFAULT_MODEL_NAME, modelDirectory);
  given.push(["model-repository", modelDirectory], ["load-model", model], ["sagemaker-default-model", model]);
  return given;
}

function defaultModel(named: string | undefined, repository: string): string {
  if (isFile(join(repository, "config.pbtxt"))) {
    throw error(
      "Incorrect directory structure.\n       Model directory needs to contain the top level folder",
    );
  }
  if (named) {
    if (isDirectory(join(repository, named))) return named;
    throw error(`Directory with provided SAGEMAKER_TRITON_DEFAULT_MODEL_NAME ${named} does not exist`);
  }
  const found = directories(repository);
  if (found.length === 1) return found[0]!;
  if (found.length === 0) throw error("No model found in model repository");
  throw error(
    "More than 1 model directory found in model repository.\n" +
      "       Either provide a single directory or set SAGEMAKER_TRITON_DEFAULT_MODEL_NAME to run the ensemble backend.\n" +
      `       Directories found in model repository: ${found.join(" ")}`,
  );
}

function additional(text: string): [string, string][] {
  return text
    .split(/\s+/)
    .filter((word) => word !== "")
    .map((word): [string, string] => {
      const [, name, value = ""] = LONG_OPTION.exec(word) ?? [];
      if (name !== undefined) return [name, value];
      throw new OptionError(`SAGEMAKER_TRITON_ADDITIONAL_ARGS: Unexpected argument: ${word}`, "alone");
    });
}

function error(text: string): OptionError {
  return new OptionError(`ERROR: ${text}`, "alone");
}

function directories(path: string): string[] {
  try {
    return readdirSync(path, { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? [entry.name] : [],
    );
  } catch {
    return [];
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}
