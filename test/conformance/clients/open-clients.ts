import type { ServeResult, Triton } from "@tritonjs/core";
import type { Client } from "./client.js";
import { grpcRawClient, grpcTypedClient } from "./grpc.js";
import { httpBinaryClient, httpJsonClient } from "./http.js";
import { inProcessClient } from "./in-process.js";

/** A client for each way to ask, of a Triton that serves. */
export function openClients(triton: Triton, { addresses }: ServeResult): Client[] {
  return [
    inProcessClient(triton),
    httpJsonClient(addresses.http!.url),
    httpBinaryClient(addresses.http!.url),
    grpcRawClient(addresses.grpc!.url),
    grpcTypedClient(addresses.grpc!.url),
  ];
}
