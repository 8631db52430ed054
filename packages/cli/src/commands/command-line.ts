import { VERSION } from "@tritonjs/core/frontend";
import { Command } from "commander";
import { analyzeCommand } from "./analyze-command.js";
import type { CommandContext } from "./command-context.js";
import { completionCommand } from "./completion-command.js";
import { configCommand } from "./config-command.js";
import { initCommand } from "./init-command.js";
import { perfCommand } from "./perf-command.js";
import { replayCommand } from "./replay-command.js";
import { serveCommand } from "./serve-help.js";
import { traceCommand } from "./trace-command.js";
import { typesCommand } from "./types-command.js";

/** Builds the program with all commands. */
export function commandLine(context: CommandContext): Command {
  const { terminal } = context;
  const program = new Command("tritonjs")
    .description("Serves models with Triton's scheduling over its protocol, from Node.js.")
    .version(VERSION)
    .showHelpAfterError(
      "Run 'tritonjs --help' for the commands. Options of tritonserver go with 'tritonjs serve'.",
    )
    .addCommand(serveCommand())
    .addCommand(configCommand(context))
    .addCommand(typesCommand(context))
    .addCommand(initCommand(context))
    .addCommand(perfCommand())
    .addCommand(analyzeCommand())
    .addCommand(replayCommand())
    .addCommand(traceCommand())
    .addCommand(completionCommand(context));
  for (const command of withSubcommands(program)) {
    command.exitOverride().configureOutput({
      writeOut: (text) => terminal.write(text),
      writeErr: (text) => terminal.writeError(text),
    });
  }
  return program;
}

function withSubcommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(withSubcommands)];
}
