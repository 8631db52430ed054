import { once } from "node:events";
import { Triton, TritonError } from "@tritonjs/core";
import { demonstrate } from "./demonstrate.js";
import { bindIris, bindLinear } from "./models.js";
import { printUrls } from "./print-urls.js";
import { OptionError, type QuickstartOptions, readOptions, USAGE } from "./read-options.js";

/*
 * The quick start: two models in one Triton, called in process, over HTTP and over gRPC. Serves until Ctrl-C. With
 * --once it ends after the demonstration.
 */

try {
  await run(readOptions());
} catch (error) {
  if (!isUserError(error)) throw error;
  console.error(error.message);
  console.error(USAGE);
  process.exitCode = 1;
}

async function run({ once: endAfterwards, ...ports }: QuickstartOptions): Promise<void> {
  // The server is only for this machine, so clients need no access token, not even for statistics.
  const triton = new Triton({ ...ports, security: { restrictedEndpoints: [] } });
  try {
    const models = { linear: bindLinear(triton), iris: bindIris(triton) };
    const served = await triton.serve();
    await demonstrate(models, served);
    printUrls(served);
    if (endAfterwards) return;
    const told = Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
    console.log("\nServing. Ctrl-C stops.");
    await told;
    console.log("\nDraining.");
  } finally {
    await triton.close();
  }
}

/** Whether another option or another port could avoid the error. Such errors are printed without a stack. */
function isUserError(error: unknown): error is Error {
  return TritonError.is(error) || error instanceof OptionError;
}
