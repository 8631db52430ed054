import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import {
  type Client,
  credentials,
  loadPackageDefinition,
  type ServiceClientConstructor,
} from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { type Answer, type Question, readElements } from "./ask-http.js";

/** The fields of ModelInfer's reply that this example reads. */
interface InferReply {
  readonly outputs: readonly { readonly datatype: string }[];
  readonly rawOutputContents: readonly Buffer[];
}

type InferClient = Client & {
  modelInfer(request: object, callback: (error: Error | null, reply: InferReply) => void): void;
};

/** A gRPC client of the v2 protocol, made from the `.proto` files that `@tritonjs/grpc` ships. */
export function openGrpcClient(address: string): InferClient {
  const proto = fileURLToPath(import.meta.resolve("@tritonjs/protocol/grpc/proto/grpc_service.proto"));
  const definition = loadPackageDefinition(loadSync(proto, { includeDirs: [dirname(proto)] }));
  const { GRPCInferenceService } = definition.inference as unknown as {
    GRPCInferenceService: ServiceClientConstructor;
  };
  return new GRPCInferenceService(address, credentials.createInsecure()) as unknown as InferClient;
}

/** Sends a request over gRPC with raw tensor contents. */
export function askGrpc(client: InferClient, { model, input, row, output }: Question): Promise<Answer> {
  const request = {
    modelName: model,
    inputs: [{ name: input, datatype: "FP32", shape: [1, row.length] }],
    outputs: [{ name: output }],
    rawInputContents: [Buffer.from(Float32Array.from(row).buffer)],
  };
  return new Promise((resolve, reject) => {
    client.modelInfer(request, (error, reply) => {
      if (error !== null) reject(error);
      else resolve(readElements(reply.outputs[0]!.datatype, reply.rawOutputContents[0]!));
    });
  });
}
