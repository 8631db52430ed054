import { Command, Option as HelpOption } from "commander";
import { optionGroups } from "../options/options.js";

/** The command `serve`, for the help only. */
export function serveCommand(): Command {
  const command = new Command("serve").description("serve a model repository");
  for (const [group, options] of Object.entries(optionGroups)) {
    for (const [name, option] of Object.entries(options)) {
      const { argument, description, noEffect } = option;
      const value = argument === undefined ? "" : ` <${argument.replaceAll(/[<>]/g, "")}>`;
      const effect = noEffect === undefined ? "" : ` Has no effect: ${noEffect}.`;
      command.addOption(new HelpOption(`--${name}${value}`, description + effect).helpGroup(`${group}:`));
    }
  }
  return command;
}

/** The usage text of `serve`. */
export function serveHelp(): string {
  return new Command("tritonjs").addCommand(serveCommand()).commands[0]!.helpInformation();
}
