import type { InferenceService } from "@tritonjs/core";
import { onTestFinished } from "vitest";
import { type GrpcOptions, grpc } from "../../src/index.js";
import { GrpcClient } from "./grpc-client.js";
import { currentTransport } from "./over-each-transport.js";

/** Serves `service` on a free port until the end of the test. */
export async function serve(service: InferenceService, options: GrpcOptions = {}) {
  const frontend = grpc({ port: 0, stopGraceMs: 0, transport: currentTransport(), ...options });
  const address = await frontend.start(service);
  const client = new GrpcClient(address.url);
  onTestFinished(async () => {
    client.close();
    await frontend.stop();
  });
  return { client, frontend, address };
}
