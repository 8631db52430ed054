#!/usr/bin/env node
import { processTerminal } from "./command/terminal.js";
import { runTools } from "./tools.js";

const code = await runTools(process.argv.slice(2), processTerminal);
// Ends the process despite handles that a model has left open, but only after the output to a pipe is written.
process.stdout.write("", () => process.stderr.write("", () => process.exit(code)));
