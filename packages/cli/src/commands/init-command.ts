import { Command, Option } from "commander";
import { TEMPLATES, type TemplateName, writeTemplate } from "../init/write-template.js";
import type { CommandContext } from "./command-context.js";

/** `tritonjs init`: writes a sample repository, or a program to begin with. */
export function initCommand({ terminal, finish }: CommandContext): Command {
  const template = new Option(
    "--template <name>",
    "a model repository, an application that calls its models in process, or a service on HTTP and gRPC",
  )
    .choices([...TEMPLATES])
    .default("repository");
  return new Command("init")
    .description("write a sample to begin with; files that exist are left alone")
    .argument("[folder]", "where to write it; `models` for a repository, else the name of the template")
    .addOption(template)
    .action(async (given: string | undefined, options: { readonly template: TemplateName }) => {
      const folder = given ?? (options.template === "repository" ? "models" : options.template);
      const { written, kept } = await writeTemplate(options.template, folder);
      for (const path of written) terminal.write(`wrote ${path}\n`);
      for (const path of kept) terminal.writeError(`${path} exists: kept as it is\n`);
      if (written.length > 0) terminal.write(`\n${nextStep(options.template, folder)}\n`);
      finish(kept.length > 0 ? 1 : 0);
    });
}

function nextStep(template: TemplateName, folder: string): string {
  if (template === "repository") return `Serve it: tritonjs serve --model-repository ${folder}`;
  return `Start it: cd ${folder} && npm install && npm start`;
}
