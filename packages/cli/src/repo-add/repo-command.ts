import { VERSION } from "@tritonjs/core/internal";
import {
  addOptions,
  EXIT,
  IMPORT_OPTIONS,
  OptionReader,
  type OptionRow,
  type ParsedOptions,
  readImportOptions,
  readShapes,
  runCommand,
  stopSignal,
  type ToolTerminal,
} from "@tritonjs/perf/internal";
import { Command } from "commander";
import { type AddedModel, type AddModelOptions, addTrainedModel } from "./add-model.js";

const GROUPS: Readonly<Record<string, readonly OptionRow[]>> = {
  "Repository:": [
    [
      "--model-repository <folder>",
      "repository that gets the model; it is made if it does not exist",
      "models",
    ],
    ["--name <name>", "name of the model; that of the file or directory unless given"],
    ["--version <n>", "version; another version of a model that exists has the same tensors", "1"],
    ["--link", "hard links instead of copies: the model then changes with its source"],
    ["--dry-run", "print what would be written, and write nothing"],
    ["--no-check", "leave out the inspection, for a machine without the packages that run the model"],
  ],
  "Model:": [
    ["--dtype <dtype>", "precision of the graph, as transformers.js names it: fp32, fp16, q8, int8, q4, ..."],
    ["--file <path>", "path of the graph in a directory of Hugging Face"],
    ["--pair", "the model takes two texts; cross-encoders do so unless told otherwise"],
    ["--max-batch-size <n>", "largest batch of a model that can batch", "32"],
    [
      "--shape <shape>",
      "shape of an input of a PyTorch model as NAME:d1,d2, without the rows; may be repeated",
    ],
    ...IMPORT_OPTIONS,
  ],
};

const EXAMPLES = `
Examples:
  $ tritonjs repo add all-MiniLM-L6-v2 --dtype q8
      an encoder of Hugging Face: texts in, embeddings out
  $ tritonjs repo add fraud.json --model-repository models --name fraud --dry-run
      shows what would be written for trees of XGBoost
  $ tritonjs repo add resnet-v2.onnx --name resnet --version 2
      another version of a model that exists

Exit codes:
  0    the models are written, or shown with --dry-run
  1    the source is not served, its files are faulty, or a file cannot be written
  130  interrupted`;

export function repoCommandOptions(version: string): Command {
  const add = new Command("add")
    .description(
      "Adds a trained model to a model repository: its files, configuration, tokenizer and labels.",
    )
    .argument("<source>", "directory of Hugging Face or Keras, SavedModel, or model file")
    .addHelpText("after", EXAMPLES)
    .showHelpAfterError("Run 'tritonjs repo add --help' for the options.");
  return new Command("tritonjs repo")
    .description("Changes a model repository on the disk.")
    .version(version, "--tritonjs-version")
    .addCommand(addOptions(add, GROUPS, ["shape", "inputType"]))
    .showHelpAfterError("Run 'tritonjs repo --help' for the commands.");
}

/**
 * Runs the command `tritonjs repo`.
 *
 * @param args arguments after the name of the command
 * @returns the exit code
 */
export async function repoCommand(args: readonly string[], terminal: ToolTerminal): Promise<number> {
  const command = repoCommandOptions(VERSION);
  let code: number = EXIT.ok;
  command.commands[0]!.action(async (source: string, given: ParsedOptions) => {
    const { signal } = stopSignal(terminal, "the file that is being written is completed and removed");
    const onProgress = (text: string) => terminal.writeError(`${text}\n`);
    const options = { ...readRepoOptions(source, given), signal, onProgress };
    try {
      const added = await addTrainedModel(options);
      terminal.write(addedText(added, options));
    } catch (error) {
      if (!signal.aborted) throw error;
      terminal.writeError("Interrupted: the repository is as it was.\n");
      code = EXIT.interrupted;
    }
  });
  return runCommand(command, args, { terminal, faultCode: 1 }, () => code);
}

function readRepoOptions(source: string, given: ParsedOptions): AddModelOptions {
  const options = new OptionReader(given);
  const optional = {
    name: options.text("name"),
    dtype: options.text("dtype"),
    file: options.text("file"),
    pair: options.has("pair") ? true : undefined,
    ...readImportOptions(options),
  };
  return {
    source,
    repository: options.text("modelRepository")!,
    version: options.whole("version", 1)!,
    maxBatchSize: options.whole("maxBatchSize", 1)!,
    shapes: readShapes(options.texts("shape")),
    link: options.has("link"),
    check: options.has("check"),
    dryRun: options.has("dryRun"),
    ...Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== undefined)),
  };
}

function addedText(
  { kind, name, models, version, files, configs, notes }: AddedModel,
  { repository, dryRun = false }: AddModelOptions,
): string {
  const lines = [`${name}: ${kind}`, ...notes.map((note) => `note: ${note}`)];
  if (dryRun) {
    lines.push(`would be written to ${repository}:`, ...files.map((path) => `  ${path}`));
    for (const model of models) lines.push(`${model}/config.pbtxt:`, indented(configs[model]!));
  } else {
    lines.push(`added version ${version} of ${models.join(", ")} to ${repository}`);
    lines.push(`serve it: tritonjs serve --model-repository=${repository}`);
  }
  return `${lines.join("\n")}\n`;
}

const indented = (text: string) => text.trimEnd().replaceAll(/^/gm, "  ");
