import { Argument, Command } from "commander";
import { bashScript } from "../completion/bash-script.js";
import { type CompletedCommand, completionTree } from "../completion/completion-tree.js";
import { fishScript } from "../completion/fish-script.js";
import { zshScript } from "../completion/zsh-script.js";
import type { CommandContext } from "./command-context.js";

const SCRIPTS: Readonly<Record<string, (root: CompletedCommand) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

/** `tritonjs completion`: prints a script that completes the commands and options in a shell. */
export function completionCommand({ terminal }: CommandContext): Command {
  const command = new Command("completion")
    .description("print a script that completes commands and options in your shell")
    .addArgument(new Argument("<shell>", "the shell").choices(Object.keys(SCRIPTS)))
    .addHelpText(
      "after",
      "\nFor this shell: source <(tritonjs completion bash), source <(tritonjs completion zsh), or\n" +
        "tritonjs completion fish | source. For all shells, write the script where your shell looks for it.",
    )
    .action((shell: string) => terminal.write(SCRIPTS[shell]!(completionTree(command.parent!))));
  return command;
}
