import { once } from "node:events";
import { parseArgs } from "node:util";
import { Triton, TritonError } from "@tritonjs/core";
import { demonstrate } from "./demonstrate.js";
import { bindIris, bindLinear } from "./models.js";
import { printUrls } from "./print-urls.js";

/*
 * The quick start: two models in one Triton, asked in process, over HTTP and over gRPC. Serves until Ctrl-C;
 * with --once it ends after the demonstration.
 */

const { values } = parseArgs({
  options: {
    once: { type: "boolean", default: false },
    "http-port": { type: "string", default: "8000" },
    "grpc-port": { type: "string", default: "8001" },
    "metrics-port": { type: "string", default: "8002" },
  },
});

const triton = new Triton({
  httpPort: Number(values["http-port"]),
  grpcPort: Number(values["grpc-port"]),
  metricsPort: Number(values["metrics-port"]),
});

try {
  const models = { linear: bindLinear(triton), iris: bindIris(triton) };
  const served = await triton.serve();
  await demonstrate(models, served);
  printUrls(served);
  if (!values.once) {
    console.log("\nServing. Ctrl-C stops.");
    await Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
    console.log("\nDraining.");
  }
} catch (error) {
  if (!TritonError.is(error)) throw error;
  console.error(error.message);
  console.error("The quick start takes --http-port, --grpc-port and --metrics-port.");
  process.exitCode = 1;
} finally {
  await triton.close();
}
