#!/usr/bin/env node
import { descriptorFault } from "./descriptor-fault.js";

try {
  // Not imported at once: where few files may be open, that is what fails.
  const { processTerminal } = await import("./process-terminal.js");
  const { run } = await import("./run.js");
  const code = await run(process.argv.slice(2), processTerminal);
  // Whatever a model has left behind must not keep the process; what is written to a pipe must not be lost.
  process.stdout.write("", () => process.stderr.write("", () => process.exit(code)));
} catch (error) {
  const fault = descriptorFault(error);
  if (fault === undefined) throw error;
  process.stderr.write(`${fault}\n`, () => process.exit(1));
}
