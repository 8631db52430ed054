import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { replaceFile, VARIANTS } from "@tritonjs/backends/optimize";
import { VERSION } from "@tritonjs/core/internal";
import { Command } from "commander";
import {
  addOptions,
  CLEAR_LINE,
  commandLineText,
  EXIT,
  type OptionRow,
  type ParsedOptions,
  runCommand,
  stopSignal,
  type ToolTerminal,
} from "../command/tool-command.js";
import { invalidOption } from "../command/tool-errors.js";
import { OptionReader, readOptionNumber, readShapes, readWord } from "../perf/option-reader.js";
import { IMPORT_OPTIONS, readImportOptions } from "./import-options.js";
import { type OptimizeOptions, optimize } from "./optimize.js";
import { formsTable, optimizeHtml, optimizeJson } from "./optimize-reports.js";

const GOALS = ["rate", "latency", "size"] as const;
const METHODS = ["min-max", "entropy", "percentile"] as const;
const BLOCKS = [16, 32, 64, 128, 256] as const;

const REPEATED = ["inputData", "shape", "inputType", "dimension", "keep", "fix"];

/** Options by the groups of the help. Those that `perf` and `analyze` have too are named as there. */
const GROUPS: Readonly<Record<string, readonly OptionRow[]>> = {
  "Goal:": [
    ["--goal <goal>", "what the chosen form is best at: rate, latency or size", "rate"],
    ["--accuracy-floor <points>", "points of accuracy that a form may lose, with --labels", "0.5"],
    ["--max-error <percent>", "largest relative error of an output, without --labels", "10"],
    ["--latency-budget <ms>", "limit on the p99 latency"],
    ["--max-size <bytes>", "limit on the size of the files"],
    ["--max-memory <MB>", "limit on the memory of the program that serves a form"],
  ],
  "Samples:": [
    ["--input-data <file>", "JSON file with one row in each entry; may be repeated; generated unless given"],
    ["--samples <n>", "samples that are generated", "32"],
    ["--labels <file>", "right class of each row, one in each line"],
    ["--label-output <name>", "output that the labels are for; the first with scores unless given"],
    [
      "--shape <shape>",
      "shape of an input with variable dimensions as NAME:d1,d2, without the rows; may be repeated",
    ],
    ["--dimension <size>", "size of a dimension of generated samples as NAME:n; may be repeated"],
    ["--seed <n>", "seed of generated samples", "0"],
  ],
  "Import:": IMPORT_OPTIONS,
  "Forms:": [
    ["--forms <names>", `forms to make, by commas: ${VARIANTS.join(", ")}; all unless given`],
    ["--keep <name>", "node, output or operator that stays as it is; may be repeated"],
    ["--calibration <method>", "ranges of static-int8: min-max, entropy or percentile", "min-max"],
    ["--percentile <percent>", "share of the values that the method percentile keeps", "99.99"],
    ["--block-size <n>", "block of int4-weights: 16, 32, 64, 128 or 256", "32"],
    [
      "--fix <size>",
      "size that a dimension has for good as NAME:n, or an input as NAME:d1,d2; may be repeated",
    ],
    ["--own-form", "also try ONNX Runtime's own form of each, which only this processor can load"],
    ["--low-memory", "also try each without ONNX Runtime's memory arena: less memory, often slower"],
  ],
  "Measurement:": [
    ["--batch-sizes <list>", "rows of the requests; 1,8 unless given"],
    ["--concurrency <list>", "requests in flight; 1,4 unless given, 1 for the goal latency"],
    ["--threads <list>", "threads of a session, 0 for the default", "0"],
    ["-p, --measurement-interval <ms>", "length of a time window; a measurement has three", "500"],
    ["--resume", "continue with the measurements of the last run"],
  ],
  "Output:": [
    ["-e, --export-path <folder>", "folder of the reports and the checkpoint", "optimize-results"],
    [
      "--output-model-repository-path <folder>",
      "repository that gets the chosen form; `models` in the export path unless given",
    ],
    ["--name <name>", "name of the served model; that of the file unless given"],
    ["--class-names <file>", "names of the classes, one in each line"],
  ],
};

const EXAMPLES = `
Examples:
  $ tritonjs optimize digits.onnx --input-data digits.json --labels labels.txt
      makes all forms, and writes the one with the highest rate that loses at most half a point of accuracy
  $ tritonjs optimize encoder.onnx --goal size --max-error 2 --shape speech:200,80
      the smallest form whose outputs differ by at most 2%, on generated samples
  $ tritonjs optimize decoder.onnx --forms dynamic-int8,int4-weights --goal latency
      the form of two with the lowest latency

Exit codes:
  0    a form is chosen and written
  1    no form is within the limits
  99   anything else: options, the model, or a file that cannot be written
  130  interrupted`;

export function optimizeCommandOptions(version: string): Command {
  const command = new Command("tritonjs optimize")
    .description(
      "Makes forms of a trained model, checks and measures each, and writes the best as a model to serve.",
    )
    .argument(
      "<model>",
      "the ONNX file, a directory with a model.onnx, or a model of PyTorch or scikit-learn",
    )
    .version(version, "--version")
    .addHelpText("after", EXAMPLES)
    .showHelpAfterError("Run 'tritonjs optimize --help' for the options.");
  return addOptions(command, GROUPS, REPEATED);
}

/**
 * Runs the command `tritonjs optimize`.
 *
 * @param args arguments after the name of the command
 * @returns the exit code: 0 if a form is written, 1 if none is within the limits, 130 if it was interrupted, 99 for
 * other faults
 */
export async function optimizeCommand(args: readonly string[], terminal: ToolTerminal): Promise<number> {
  const command = optimizeCommandOptions(VERSION);
  return runCommand(command, args, { terminal, faultCode: EXIT.error }, async () => {
    const [model] = command.args;
    const settings = readOptimizeOptions(model!, command.opts());
    const { signal } = stopSignal(terminal, "the reports are written after the step that runs");
    const clear = terminal.isInteractive ? CLEAR_LINE : "";
    const onProgress = (text: string) => terminal.writeError(`${clear}${text}\n`);
    const result = await optimize({ ...settings, signal, onProgress });
    terminal.write(formsTable(result));
    const text = commandLineText("tritonjs optimize", args);
    const { exportPath } = settings;
    await mkdir(exportPath, { recursive: true });
    await replaceFile(join(exportPath, "report.json"), [optimizeJson(result, text, VERSION)]);
    await replaceFile(join(exportPath, "report.html"), [optimizeHtml(result, text, VERSION)]);
    if (result.isInterrupted) {
      terminal.writeError(`Continue with --resume: ${result.checkpoint} has the measurements.\n`);
      return EXIT.interrupted;
    }
    return result.choice === undefined ? EXIT.notMet : EXIT.ok;
  });
}

export function readOptimizeOptions(
  model: string,
  given: ParsedOptions,
): OptimizeOptions & { readonly exportPath: string } {
  const options = new OptionReader(given);
  const list = (name: string, flag: string, min: number) =>
    options
      .text(name)
      ?.split(",")
      .map((text) => readOptionNumber(flag, text.trim(), { min, whole: true }));
  const forms = options
    .text("forms")
    ?.split(",")
    .map((text) => readWord("--forms", text.trim(), VARIANTS));
  const block = options.whole("blockSize");
  const blockSize = BLOCKS.find((size) => size === block);
  if (blockSize === undefined)
    throw invalidOption(`--block-size: expected one of ${BLOCKS.join(", ")}, got '${block}'`);
  const shapes = readShapes(options.texts("shape"));
  const optional = {
    variants: forms,
    latencyBudgetMs: options.number("latencyBudget"),
    maxBytes: options.whole("maxSize"),
    maxMemoryMb: options.number("maxMemory"),
    inputData: options.has("inputData") ? options.texts("inputData") : undefined,
    labels: options.text("labels"),
    labelOutput: options.text("labelOutput"),
    classNames: options.text("classNames"),
    name: options.text("name"),
    repository: options.text("outputModelRepositoryPath"),
    batchSizes: list("batchSizes", "--batch-sizes", 1),
    concurrency: list("concurrency", "--concurrency", 1),
    threads: list("threads", "--threads", 0),
    fixed: readFixed(options.texts("fix")),
    ...readImportOptions(options),
  };
  return {
    model,
    goal: options.word("goal", GOALS),
    accuracyFloor: options.number("accuracyFloor")!,
    maxError: options.number("maxError")! / 100,
    count: options.whole("samples", 1)!,
    seed: options.whole("seed")!,
    shapes,
    dimensions: readDimensions("--dimension", options.texts("dimension")),
    keep: options.texts("keep"),
    method: options.word("calibration", METHODS),
    percentile: options.number("percentile", { max: 100 })!,
    blockSize,
    ownForm: options.has("ownForm"),
    lowMemory: options.has("lowMemory"),
    intervalMs: options.number("measurementInterval", { min: 1 })!,
    resume: options.has("resume"),
    exportPath: options.text("exportPath")!,
    ...Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== undefined)),
  };
}

/** Reads `NAME:n` for each dimension. */
function readDimensions(option: string, texts: readonly string[]): Record<string, number> {
  return Object.fromEntries(
    texts.map((text) => {
      const [, name = "", size = ""] = /^(.+):(\d+)$/.exec(text) ?? [];
      if (name === "") throw invalidOption(`${option}: expected NAME:n, got '${text}'`);
      return [name, readOptionNumber(option, size, { whole: true })];
    }),
  );
}

/** Reads `NAME:n` as a dimension and `NAME:d1,d2` as the shape of an input. */
function readFixed(texts: readonly string[]): OptimizeOptions["fixed"] {
  if (texts.length === 0) return undefined;
  const inputs = texts.filter((text) => text.includes(","));
  const dimensions = texts.filter((text) => !text.includes(","));
  return { dimensions: readDimensions("--fix", dimensions), inputs: readShapes(inputs) };
}
