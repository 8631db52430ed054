#!/usr/bin/env node
import { processTerminal } from "./process-terminal.js";
import { run } from "./run.js";

const code = await run(process.argv.slice(2), processTerminal);
// Whatever a model has left behind must not keep the process; what is written to a pipe must not be lost.
process.stdout.write("", () => process.stderr.write("", () => process.exit(code)));
