import type { ServeResult, Triton } from "@tritonjs/core";
import type { Client } from "./client.js";
import { grpcRawClient, grpcTypedClient } from "./grpc.js";
import { grpcStreamClient } from "./grpc-stream.js";
import { httpBinaryClient, httpJsonClient } from "./http.js";
import { inProcessClient } from "./in-process.js";

/** One client of each kind for a serving Triton. */
export function openClients(triton: Triton, { addresses }: ServeResult): Client[] {
  return [
    inProcessClient(triton),
    httpJsonClient(addresses.http!.url),
    httpBinaryClient(addresses.http!.url),
    grpcRawClient("gRPC raw", addresses.grpc!.url),
    grpcTypedClient(addresses.grpc!.url),
  ];
}

/** The other gRPC clients; `grpcJs` is the frontend over grpc-js. */
export function openGrpcClients({ addresses }: ServeResult, grpcJs: string): Client[] {
  return [
    grpcStreamClient("gRPC stream", addresses.grpc!.url),
    grpcRawClient("gRPC raw over grpc-js", grpcJs),
    grpcStreamClient("gRPC stream over grpc-js", grpcJs),
  ];
}
