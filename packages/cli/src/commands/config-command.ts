import { stat } from "node:fs/promises";
import { basename, dirname, relative, resolve } from "node:path";
import { repositoryServer } from "@tritonjs/perf/internal";
import { toConfigJson } from "@tritonjs/protocol/config";
import type { RepositoryOptions } from "@tritonjs/repository";
import {
  type Finding,
  type InspectOptions,
  inspectRepository,
  isCloudPath,
  type ModelInspection,
  writePrototxt,
} from "@tritonjs/repository/config";
import { serviceOf } from "@tritonjs/server";
import { Command } from "commander";
import type { CommandContext } from "../command-context.js";
import { extensionsOfModels } from "../serve/extensions.js";

interface ConfigOptions {
  readonly json?: true;
  readonly load?: true;
  readonly modelConfigName?: string;
  readonly disableAutoCompleteConfig?: true;
  readonly backendDirectory?: string;
  readonly repoagentDirectory?: string;
}

const withConfigOptions = (command: Command): Command =>
  command
    .option("--model-config-name <name>", "use configs/<name>.pbtxt where there is one")
    .option("--disable-auto-complete-config", "do not complete configurations from the model files")
    .option(
      "--backend-directory <directory>",
      "directory of backends that models share: <backend>/model.py, or <backend>/backend.js",
    )
    .option(
      "--repoagent-directory <directory>",
      "directory of repository agents: <agent>/agent.js or <agent>/agent.py",
    );

export function configCommand(context: CommandContext): Command {
  return new Command("config")
    .description("look at model configurations")
    .addCommand(checkCommand(context))
    .addCommand(showCommand(context));
}

function checkCommand({ terminal, additions, finish }: CommandContext): Command {
  return withConfigOptions(
    new Command("check")
      .description(
        "find everything that is wrong with a model repository; exits with 1 when there are errors",
      )
      .argument("<repositories...>", "model repositories, or a single model")
      .option("--json", "print the findings as JSON")
      .option("--load", "also load the models, which runs them"),
  ).action(async (paths: string[], { json, load, repoagentDirectory, ...options }: ConfigOptions) => {
    const settings = { ...options, ...agentsOf(repoagentDirectory), ...additions };
    let found = await inspectPaths(paths, settings);
    if (load) found = await loadModels(found, paths, settings);
    const report = checkReport(found);
    terminal.write(json ? `${JSON.stringify(report, null, 2)}\n` : reportText(report));
    finish(report.errors > 0 ? 1 : 0);
  });
}

function showCommand({ terminal, additions, finish }: CommandContext): Command {
  return withConfigOptions(
    new Command("show")
      .description("print the completed configuration of a model")
      .argument("<model>", "directory of the model")
      .option("--json", "print Triton's JSON instead of config.pbtxt"),
  ).action(async (path: string, { json, repoagentDirectory, ...options }: ConfigOptions) => {
    const model = await inspectOne(path, { ...options, ...agentsOf(repoagentDirectory), ...additions });
    if (model.config === undefined) {
      terminal.writeError(findingsText([model]));
      finish(1);
      return;
    }
    terminal.write(
      json ? `${JSON.stringify(toConfigJson(model.config, String), null, 2)}\n` : writePrototxt(model.config),
    );
  });
}

function agentsOf(repositoryAgentDirectory: string | undefined) {
  return repositoryAgentDirectory === undefined ? {} : { repositoryAgentDirectory };
}

async function inspectPaths(paths: readonly string[], options: InspectOptions): Promise<ModelInspection[]> {
  const [only] = paths;
  if (only !== undefined && paths.length === 1 && (await isModel(only))) {
    return [await inspectOne(only, options)];
  }
  return inspectHere(paths, options);
}

/** Inspects model repositories for the GPUs of this machine. */
export async function inspectHere(
  paths: readonly string[],
  options: InspectOptions,
  models?: readonly string[],
): Promise<ModelInspection[]> {
  const { machineGpus } = await import("@tritonjs/backends/gpu");
  const extensions = await extensionsOfModels();
  return inspectRepository(paths, { ...options, gpus: machineGpus(), extensions }, models);
}

async function inspectOne(path: string, options: InspectOptions): Promise<ModelInspection> {
  const isCloud = isCloudPath(path);
  const directory = isCloud ? path.replace(/\/+$/, "") : resolve(path);
  const name = basename(directory);
  const parent = isCloud ? directory.slice(0, -name.length) : dirname(directory);
  const [model] = await inspectHere([parent], options, [name]);
  if (model !== undefined) return model;
  const message = `cannot find the model directory ${directory}`;
  const finding = { severity: "error", path: directory, message } as const;
  return { name, directory, config: undefined, findings: [finding] };
}

function isModel(path: string): Promise<boolean> {
  return stat(resolve(path, "config.pbtxt")).then(
    (found) => found.isFile(),
    () => false,
  );
}

async function loadModels(
  inspections: readonly ModelInspection[],
  repositories: readonly string[],
  options: RepositoryOptions,
): Promise<ModelInspection[]> {
  const logger = { error: () => {}, warn: () => {}, info: () => {}, debug: () => {} };
  const models = { ...options, modelRepository: repositories, exitOnError: false };
  await using triton = await repositoryServer(models, { logger });
  await triton.ready().catch(() => {});
  const index = await serviceOf(triton).repositoryIndex(false);
  return inspections.map((inspection) => {
    const failures = index
      .filter(({ name, state }) => name === inspection.name && state !== "READY")
      .map(
        ({ version, reason }): Finding => ({
          severity: "error",
          path: inspection.directory,
          message: `${version === undefined ? "" : `version ${version} `}cannot be loaded: ${reason ?? "unknown reason"}`,
        }),
      )
      .filter(({ message }) => !inspection.findings.some((known) => message.includes(known.message)));
    return { ...inspection, findings: [...inspection.findings, ...failures] };
  });
}

interface Advice extends Finding {
  readonly model: string;
  readonly fix?: string;
}

export interface CheckReport {
  readonly models: number;
  readonly errors: number;
  readonly warnings: number;
  readonly findings: readonly Advice[];
}

function checkReport(models: readonly ModelInspection[]): CheckReport {
  const findings = models.flatMap(({ name, findings }) => findings.map((finding) => advise(name, finding)));
  const count = (severity: Finding["severity"]) =>
    findings.filter((finding) => finding.severity === severity).length;
  return { models: models.length, errors: count("error"), warnings: count("warning"), findings };
}

/** The findings about models as lines of text. */
export function findingsText(models: readonly ModelInspection[]): string {
  return reportText(checkReport(models));
}

function reportText({ models, errors, warnings, findings }: CheckReport): string {
  const lines = findings.flatMap(({ path, line, column, severity, message, fix }) => {
    const place = [shown(path), line, column].filter((part) => part !== undefined);
    const text = `${place.join(":")}: ${severity}: ${message}`;
    return fix === undefined ? [text] : [text, `    fix: ${fix}`];
  });
  const summary = `${counted(models, "model")}: ${counted(errors, "error")}, ${counted(warnings, "warning")}`;
  return `${[...lines, summary].join("\n")}\n`;
}

/** Shortens a path to one relative to the working directory, if the path is inside it. */
function shown(path: string): string {
  if (isCloudPath(path)) return path;
  const short = relative(process.cwd(), path);
  return short === "" || short.startsWith("..") ? path : short;
}

function advise(model: string, finding: Finding): Advice {
  const fix = suggestFix(finding.message);
  return { model, ...finding, ...(fix === undefined ? {} : { fix }) };
}

function counted(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}

/** Fixes for messages; the first row that matches counts. `$1` is the first group of the pattern. */
const FIXES: readonly (readonly [message: RegExp, fix: string])[] = [
  [/^warmup sample .* cannot read the data/, "add the data file, or use 'zero_data' or 'random_data'"],
  [/has no field named "(\w+)"/, "remove '$1', or look up its name in docs/model-configuration.md"],
  [
    /Unknown enumeration value of "(\w*)" for field "(data_type)"/,
    "data types are TYPE_FP32, TYPE_INT64, TYPE_STRING and the like",
  ],
  [
    /Unknown enumeration value of "(\w*)" for field "kind"/,
    "kinds are KIND_AUTO, KIND_CPU, KIND_GPU and KIND_MODEL",
  ],
  [/Non-repeated field "(\w+)" is specified multiple times/, "write '$1' once"],
  [/^Expected "(.)"/, "a '$1' is missing here or before"],
  [/^Expected string/, "put the value in double quotes"],
  [/^Expected integer|^Expected double/, "write a number, without quotes"],
  [/directory name must equal model name/, "remove 'name' from the configuration, or rename the directory"],
  [
    /Could not determine backend for model/,
    "put model.onnx into the version directory, or write a config.pbtxt with 'backend'",
  ],
  [
    /^failed to stat file|^unable to find '(.*)' for model instance/,
    "add the model's file, or name another with 'default_model_filename'",
  ],
  [
    /at least one version must be available/,
    "create a version directory '1' with the model's file, or change 'version_policy'",
  ],
  [
    /version (\d+) is specified for model .* not present/,
    "create the directory '$1', or remove that version from 'version_policy'",
  ],
  [/ignore version directory '(.*)' which contains leading zeros/, "rename it without the zeros"],
  [/ignore version directory/, "name versions 1, 2, 3 and so on; other directories are not loaded"],
  [/is ignored: the configuration is '(.*)'/, "rename it to '$1'"],
  [
    /failed to open text file for read (.*): No such file/,
    "write that file, or remove its name from the configuration",
  ],
  [
    /failed to open text file for read .*: (Permission denied)/,
    "give the user that runs the server permission to read it",
  ],
  [
    /leads out of .* through a symbolic link|expected a path inside the model's directory/,
    "copy it into the model's directory",
  ],
  [
    /expects datatype (\w+) for (\w+) '(.*)', model provides (\w+)/,
    "write 'data_type: $4' for '$3', or leave inputs and outputs out: they are completed from the file",
  ],
  [/allowed (?:in|out)puts are: (.*)/, "use one of the names in the file: $1"],
  [
    /configuration expects (\d+) inputs, model provides (\d+)/,
    "list all inputs of the file, or none: they are completed from the file",
  ],
  [
    /the model expects \d+ dimensions/,
    "write 'dims' as the file has them, without the batch dimension when 'max_batch_size' is above 0",
  ],
  [
    /support batching the shape should have at least 1 dimension/,
    "set 'max_batch_size: 0', or export the model with a dynamic first dimension",
  ],
  [
    /model does not support batching while non-zero/,
    "set 'max_batch_size: 0', or export the model with a dynamic first dimension",
  ],
  [/autofilled max_batch_size/, "set 'max_batch_size' to the largest batch that is worth it"],
  [/must specify 'dims'/, "write 'dims', with -1 for a size that varies"],
  [/must specify 'data_type'|expected a known 'data_type'/, "write 'data_type', such as TYPE_FP32"],
  [/must specify 'name'/, "give it the name that the model uses"],
  [/dimension must be integer >= 1/, "use positive sizes, and -1 for one that varies"],
  [/reshape/, "give 'reshape' as many elements as 'dims'"],
  [/'max_batch_size' must be non-negative/, "write 0 for a model that does not batch"],
  [/preferred size must be <= max batch size/, "raise 'max_batch_size' or lower 'preferred_batch_size'"],
  [/Response Cache does not currently support/, "remove 'response_cache'"],
  [/has kind KIND_GPU but/, "write 'kind: KIND_CPU', or leave 'kind' out"],
  [/specifies profile field/, "remove 'profile'"],
  [/expected a count of at least 1/, "write a 'count' of 1 or more, or leave it out"],
  [
    /contains models that are not available or ambiguous: (.*)/,
    "add $1 to the repository, or remove the steps",
  ],
  [/circular dependency between ensembles/, "remove the step that makes the ensemble depend on itself"],
  [/depends on '(.*)' which is not valid/, "fix '$1' first"],
  [/whose required version (-?\d+) is not loaded/, "write 'model_version: -1' for the latest one"],
  [
    /allows maximum batch size (\d+), but it contains model (\S+)/,
    "lower 'max_batch_size' of the ensemble, or raise that of $2",
  ],
  [
    /ensemble tensor '(.*)' is unused/,
    "map '$1' to an input of a later step, or remove it from 'output_map'",
  ],
  [/not unique across all model repositories/, "rename one of them, or serve with --model-namespacing=true"],
  [/external data|data file .* of .* does not exist/i, "copy the files with the weights beside the model"],
  [/: '([\w.]+)' has no effect/, "remove '$1'; it has no effect"],
];

/** Suggests a fix for a finding; undefined when the message already contains it. */
function suggestFix(message: string): string | undefined {
  for (const [pattern, fix] of FIXES) {
    const found = pattern.exec(message);
    if (found !== null) return fix.replaceAll(/\$(\d)/g, (_, place) => found[Number(place)] ?? "");
  }
  return undefined;
}
