export type { Extensions, Terminal } from "./command-context.js";
export { processTerminal } from "./command-context.js";
export { OptionError } from "./options/option.js";
export { type OptionName, type OptionValues, optionGroups } from "./options/options.js";
export { readArguments } from "./options/read-arguments.js";
export { run } from "./run.js";
export type { ToolTerminal } from "./tool-command.js";
