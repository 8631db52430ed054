import { stat, writeFile } from "node:fs/promises";
import {
  type InspectOptions,
  inspectModelFile,
  inspectRepository,
  isCloudPath,
  type ModelInspection,
  modelTypes,
} from "@tritonjs/core/config";
import { TritonError } from "@tritonjs/protocol";
import { Command } from "commander";
import type { CommandContext } from "../command-context.js";
import { checkReport, reportText } from "./config-command.js";

interface Options {
  readonly out?: string;
  readonly modelConfigName?: string;
}

/** `tritonjs types`: writes types for `triton.infer` and `triton.bind` from models and model files. */
export function typesCommand({ terminal, extensions, finish }: CommandContext): Command {
  return new Command("types")
    .description("write a .d.ts that types triton.infer() and triton.bind() for models")
    .argument(
      "<paths...>",
      "model repositories; .onnx files, model.json files, SavedModels and tree models, also as <name>=<file>",
    )
    .option("--out <file>", "file to write; standard output unless given")
    .option("--model-config-name <name>", "use configs/<name>.pbtxt where there is one")
    .action(async (paths: string[], { out, ...options }: Options) => {
      const models = await inspectPaths(paths, { ...options, ...extensions });
      const text = modelTypes(models.flatMap(({ config }) => config ?? []));
      const broken = models.filter(({ config }) => config === undefined);
      if (broken.length > 0) terminal.writeError(reportText(checkReport(broken)));
      if (out === undefined) terminal.write(text);
      else await writeFile(out, text);
      finish(broken.length > 0 ? 1 : 0);
    });
}

/**
 * Inspects model repositories and model files. A file may come with the name of its model: `resnet=files/v2.onnx`.
 *
 * @throws TritonError for a path that does not exist or is neither of both
 */
async function inspectPaths(paths: readonly string[], options: InspectOptions): Promise<ModelInspection[]> {
  const found = await Promise.all(paths.map(async (path) => ({ path, model: await inspectFile(path) })));
  const repositories = found.filter(({ model }) => model === undefined).map(({ path }) => path);
  for (const path of repositories) await assertRepository(path);
  const files = found.flatMap(({ model }) => model ?? []);
  const inRepositories = repositories.length === 0 ? [] : await inspectRepository(repositories, options);
  const names = inRepositories.map(({ name }) => name);
  return [...inRepositories, ...files.map((file) => unlessTaken(file, names))];
}

async function assertRepository(path: string): Promise<void> {
  if (isCloudPath(path)) return;
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory()) return;
  const expected =
    "a model repository, an .onnx file, a model.json of TensorFlow.js, the directory of a SavedModel, or a tree model " +
    "(.json, .ubj or .model of XGBoost, .txt of LightGBM, .tl of Treelite)";
  const got = found === undefined ? "a path that does not exist" : "another file";
  throw new TritonError("INVALID_ARG", `cannot read models of '${path}': expected ${expected}, got ${got}`);
}

async function inspectFile(given: string): Promise<ModelInspection | undefined> {
  if (isCloudPath(given)) return undefined;
  const sign = given.indexOf("=");
  const isNamed = sign > 0 && !(await exists(given));
  return isNamed ? inspectModelFile(given.slice(sign + 1), given.slice(0, sign)) : inspectModelFile(given);
}

/** Reports a name that another model has, because only one can have its types. */
function unlessTaken(model: ModelInspection, names: string[]): ModelInspection {
  const { name, directory } = model;
  if (!names.includes(name)) {
    names.push(name);
    return model;
  }
  const message = `two models have the name '${name}': name one with <name>=<file>`;
  return { ...model, config: undefined, findings: [{ severity: "error", path: directory, message }] };
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
