import { Command } from "commander";
import { writeSample } from "../init/write-sample.js";
import type { CommandContext } from "./command-context.js";

/** `tritonjs init`: writes a sample repository. */
export function initCommand({ terminal, finish }: CommandContext): Command {
  return new Command("init")
    .description("write a sample model repository; files that exist are left alone")
    .argument("[folder]", "folder of the repository", "models")
    .action(async (folder: string) => {
      const { written, kept } = await writeSample(folder);
      for (const path of written) terminal.write(`wrote ${path}\n`);
      for (const path of kept) terminal.writeError(`${path} exists: kept as it is\n`);
      if (written.length > 0) terminal.write(`\nServe it: tritonjs serve --model-repository ${folder}\n`);
      finish(kept.length > 0 ? 1 : 0);
    });
}
