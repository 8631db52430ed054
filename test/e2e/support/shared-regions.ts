import { randomUUID } from "node:crypto";
import { InferenceServerClient as GrpcClient } from "@tritonjs/client/grpc";
import { InferenceServerClient as HttpClient } from "@tritonjs/client/http";
import { sample, type Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { http } from "@tritonjs/http";
import { SharedMemoryRegion } from "@tritonjs/server/shared-memory";
import { onTestFinished } from "vitest";
import { openGrpcJsServer } from "../../support/grpc-js-server.js";
import { openTriton } from "./open-triton.js";

/** Ways in which a client with regions can reach a server. */
export const SOCKET_WAYS = ["HTTP", "gRPC over http2", "gRPC over grpc-js"] as const;
type Way = (typeof SOCKET_WAYS)[number];

/** Serves over one transport and returns its client. */
export async function connectOver(triton: Triton, way: Way): Promise<HttpClient | GrpcClient> {
  if (way === "HTTP") {
    const { addresses } = await triton.serve({ frontends: [http({ port: 0 })] });
    return new HttpClient(addresses.http!.url);
  }
  const client = new GrpcClient(await grpcUrl(triton, way === "gRPC over http2" ? "http2" : "grpc-js"));
  onTestFinished(() => client.close());
  return client;
}

/** Serves over a gRPC transport. Returns the URL for clients. */
export async function grpcUrl(triton: Triton, transport: "http2" | "grpc-js"): Promise<string> {
  if (transport === "http2") {
    const { addresses } = await triton.serve({ frontends: [grpc({ port: 0 })] });
    return addresses.grpc!.url;
  }
  await triton.ready();
  const { url, close } = await openGrpcJsServer(triton);
  onTestFinished(close);
  return url;
}

/** A Triton with shared memory enabled, and models that double numbers and reverse strings. */
export function openShared(): Triton {
  const triton = openTriton({ allowClientSharedMemory: true });
  triton.bind({
    modelName: "double",
    inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [-1] }],
    inferFunc: sample(({ x }) => ({ y: x.data.map((value) => 2 * value) })),
  });
  triton.bind({
    modelName: "reverse",
    inputs: [{ name: "x", dtype: "BYTES", shape: [-1] }],
    outputs: [{ name: "y", dtype: "BYTES", shape: [-1] }],
    inferFunc: sample(({ x }) => ({ y: [...(x.data as Uint8Array[])].reverse() })),
  });
  return triton;
}

/** A shared memory object that is registered with the server until the end of the test. */
export async function openRegion(
  client: HttpClient | GrpcClient,
  name: string,
  byteSize: number,
): Promise<SharedMemoryRegion> {
  const region = await SharedMemoryRegion.create(`/tritonjs-${randomUUID().slice(0, 13)}`, byteSize);
  onTestFinished(() => region.destroy());
  await client.registerSystemSharedMemory(name, region);
  return region;
}

/** The input of `double` in the region `in`. */
export const sharedInput = (byteSize: number, count = byteSize / 4, offset = 0) => ({
  x: { datatype: "FP32" as const, shape: [count], sharedMemory: { region: "in", byteSize, offset } },
});
