export type { Extensions } from "./extensions.js";
export { OptionError } from "./options/option-error.js";
export { type OptionName, type OptionValues, optionGroups } from "./options/options.js";
export { readArguments } from "./options/read-arguments.js";
export { processTerminal } from "./process-terminal.js";
export { run } from "./run.js";
export type { Terminal } from "./terminal.js";
