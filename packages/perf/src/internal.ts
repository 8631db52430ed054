/*
 * `@tritonjs/perf/internal`: what the command `tritonjs` uses of this package. It may change in any release. It loads
 * none of the tools.
 */
export { cleanUpAtExit } from "./command/exit-cleanups.js";
export { repositoryServer } from "./command/repository-server.js";
export { processTerminal, type Terminal } from "./command/terminal.js";
export {
  addOptions,
  EXIT,
  type OptionRow,
  type ParsedOptions,
  runCommand,
  stopSignal,
  type ToolTerminal,
} from "./command/tool-command.js";
export { invalidOption } from "./command/tool-errors.js";
export { IMPORT_OPTIONS, readImportOptions } from "./optimize/import-options.js";
export { OptionReader, readShapes } from "./perf/option-reader.js";
export { listTools, TOOLS, type Tool } from "./tools.js";
