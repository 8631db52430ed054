import type { GrpcOptions } from "@tritonjs/grpc";
import type { InferenceService } from "@tritonjs/server";
import { onTestFinished } from "vitest";
import { serve } from "../../../../grpc/test/support/serve.js";
import { type ClientOptions, InferenceServerClient } from "../../../src/grpc/index.js";

/** Serves `service` until the end of the test, and opens a client of the package. */
export async function openClient(
  service: InferenceService,
  options: ClientOptions = {},
  serverOptions: GrpcOptions = {},
) {
  const { address, frontend } = await serve(service, serverOptions);
  const client = new InferenceServerClient(address.url, options);
  onTestFinished(() => client.close());
  return { client, frontend, url: address.url };
}
