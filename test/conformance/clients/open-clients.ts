import type { ServeResult, Triton } from "@tritonjs/core";
import type { Client } from "./client.js";
import { grpcRawClient, grpcTypedClient } from "./grpc.js";
import { grpcStreamClient } from "./grpc-stream.js";
import { httpBinaryClient, httpJsonClient } from "./http.js";
import { inProcessClient } from "./in-process.js";

/** A client for each way to ask, of a Triton that serves. */
export function openClients(triton: Triton, { addresses }: ServeResult): Client[] {
  return [
    inProcessClient(triton),
    httpJsonClient(addresses.http!.url),
    httpBinaryClient(addresses.http!.url),
    grpcRawClient("gRPC raw", addresses.grpc!.url),
    grpcTypedClient(addresses.grpc!.url),
  ];
}

/** Clients for the other ways of gRPC; `grpcJs` is where it is served over grpc-js. */
export function openGrpcClients({ addresses }: ServeResult, grpcJs: string): Client[] {
  return [
    grpcStreamClient("gRPC stream", addresses.grpc!.url),
    grpcRawClient("gRPC raw over grpc-js", grpcJs),
    grpcStreamClient("gRPC stream over grpc-js", grpcJs),
  ];
}
