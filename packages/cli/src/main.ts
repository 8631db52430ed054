#!/usr/bin/env node
import { descriptorFault } from "./descriptor-fault.js";

// For models that load ONNX Runtime themselves: it reports to Microsoft unless the environment says otherwise.
process.env.ORT_DISABLE_TELEMETRY ||= "1";

try {
  // A static import would fail outside this `try` when few files may be open.
  const { processTerminal } = await import("@tritonjs/perf/internal");
  const { run } = await import("./run.js");
  const code = await run(process.argv.slice(2), processTerminal);
  // Ends the process despite handles that a model has left open, but only after the output to a pipe is written.
  process.stdout.write("", () => process.stderr.write("", () => process.exit(code)));
} catch (error) {
  const fault = descriptorFault(error);
  if (fault === undefined) throw error;
  process.stderr.write(`${fault}\n`, () => process.exit(1));
}
