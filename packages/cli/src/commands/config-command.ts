import { stat } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { Triton, type TritonOptions } from "@tritonjs/core";
import {
  type Finding,
  inspectRepository,
  isCloudPath,
  type ModelInspection,
  toConfigJson,
  writePrototxt,
} from "@tritonjs/core/config";
import { Command } from "commander";
import type { CommandContext } from "../command-context.js";
import { checkReport, reportText } from "./check-report.js";

interface Options {
  readonly json?: true;
  readonly load?: true;
  readonly modelConfigName?: string;
  readonly disableAutoCompleteConfig?: true;
  readonly backendDirectory?: string;
}

const CONFIG_NAME = ["--model-config-name <name>", "use configs/<name>.pbtxt where there is one"] as const;
const NO_AUTO_COMPLETE = [
  "--disable-auto-complete-config",
  "do not complete configurations from the model files",
] as const;
const BACKENDS = [
  "--backend-directory <directory>",
  "directory of backends that models share: <backend>/model.py, or <backend>/backend.js",
] as const;

/** `tritonjs config`: checks and shows configurations without serving models. */
export function configCommand(context: CommandContext): Command {
  return new Command("config")
    .description("look at model configurations")
    .addCommand(checkCommand(context))
    .addCommand(showCommand(context));
}

function checkCommand({ terminal, extensions, finish }: CommandContext): Command {
  return new Command("check")
    .description("find everything that is wrong with a model repository; exits with 1 when there are errors")
    .argument("<repositories...>", "model repositories, or a single model")
    .option("--json", "print the findings as JSON")
    .option("--load", "also load the models, which runs them")
    .option(...CONFIG_NAME)
    .option(...NO_AUTO_COMPLETE)
    .option(...BACKENDS)
    .action(async (paths: string[], { json, load, ...options }: Options) => {
      const settings = { ...options, ...extensions };
      let found = await inspectPaths(paths, settings);
      if (load) found = await loadModels(found, paths, settings);
      const report = checkReport(found);
      terminal.write(json ? `${JSON.stringify(report, null, 2)}\n` : reportText(report));
      finish(report.errors > 0 ? 1 : 0);
    });
}

function showCommand({ terminal, extensions, finish }: CommandContext): Command {
  return new Command("show")
    .description("print the completed configuration of a model")
    .argument("<model>", "directory of the model")
    .option("--json", "print Triton's JSON instead of config.pbtxt")
    .option(...CONFIG_NAME)
    .option(...NO_AUTO_COMPLETE)
    .option(...BACKENDS)
    .action(async (path: string, { json, ...options }: Options) => {
      const model = await inspectOne(path, { ...options, ...extensions });
      if (model.config === undefined) {
        terminal.writeError(reportText(checkReport([model])));
        finish(1);
        return;
      }
      terminal.write(
        json ? `${JSON.stringify(toConfigJson(model.config), null, 2)}\n` : writePrototxt(model.config),
      );
    });
}

async function inspectPaths(
  paths: readonly string[],
  options: Parameters<typeof inspectRepository>[1],
): Promise<ModelInspection[]> {
  const [only] = paths;
  if (only !== undefined && paths.length === 1 && (await isModel(only))) {
    return [await inspectOne(only, options)];
  }
  return inspectRepository(paths, options);
}

async function inspectOne(
  path: string,
  options: Parameters<typeof inspectRepository>[1],
): Promise<ModelInspection> {
  const isCloud = isCloudPath(path);
  const directory = isCloud ? path.replace(/\/+$/, "") : resolve(path);
  const name = basename(directory);
  const parent = isCloud ? directory.slice(0, -name.length) : dirname(directory);
  const [model] = await inspectRepository([parent], options, [name]);
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

/** Loads the models of repositories. @returns the findings, with the reasons of models that did not load */
async function loadModels(
  inspections: readonly ModelInspection[],
  repositories: readonly string[],
  options: TritonOptions,
): Promise<ModelInspection[]> {
  const logger = { error: () => {}, warn: () => {}, info: () => {}, debug: () => {} };
  await using triton = new Triton({ ...options, logger, modelRepository: repositories, exitOnError: false });
  await triton.ready().catch(() => {});
  const index = await triton.service.repositoryIndex(false);
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
