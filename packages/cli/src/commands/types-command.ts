import { writeFile } from "node:fs/promises";
import { modelTypes } from "@tritonjs/core/config";
import { Command } from "commander";
import { checkReport, reportText } from "../check/check-report.js";
import { inspectPaths } from "../check/model-paths.js";
import type { CommandContext } from "./command-context.js";

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
