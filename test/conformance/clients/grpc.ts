import { fileURLToPath } from "node:url";
import { credentials, Client as GrpcClient, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import type { DataType } from "@tritonjs/core";
import protobuf from "protobufjs";
import {
  type Answer,
  type Client,
  type InferCall,
  type NamedTensor,
  type Parameter,
  Refusal,
  type Way,
} from "./client.js";
import { fromWire, toWire } from "./wire.js";

const proto = fileURLToPath(new URL("../../../packages/protocol/proto/grpc_service.proto", import.meta.url));
export const root = new protobuf.Root().loadSync(proto);
const requestType = root.lookupType("inference.ModelInferRequest");
const responseType = root.lookupType("inference.ModelInferResponse");

/** Sends tensors as raw bytes. */
export function grpcRawClient(way: Way, address: string): Client {
  return grpcClient(way, address, rawInputs);
}

/** Tensors as raw bytes. */
export function rawInputs(inputs: readonly NamedTensor[]): object {
  return {
    inputs: inputs.map(declarationOf),
    rawInputContents: inputs.map(({ datatype, elements }) => toWire(datatype, elements)),
  };
}

/** Sends tensors as lists of numbers. Answers are raw all the same, as Triton's. */
export function grpcTypedClient(address: string): Client {
  return grpcClient("gRPC typed", address, (inputs) => ({
    inputs: inputs.map((input) => ({ ...declarationOf(input), contents: contentsOf(input) })),
  }));
}

function grpcClient(
  way: Way,
  address: string,
  encodeInputs: (inputs: readonly NamedTensor[]) => object,
): Client {
  const client = openGrpc(address);
  return {
    way,
    async infer(call) {
      const response = await modelInfer(client, encodeRequest(call, encodeInputs(call.inputs)), call);
      return answerOf(responseType.decode(response));
    },
    close: () => client.close(),
  };
}

/** A connection of its own. */
export function openGrpc(address: string): GrpcClient {
  return new GrpcClient(address, credentials.createInsecure(), { "grpc.use_local_subchannel_pool": 1 });
}

/** The message of a call, with inputs that are encoded already. */
export function encodeRequest(call: InferCall, inputs: object): Buffer {
  const request = requestType.fromObject({
    modelName: call.model,
    modelVersion: call.version === undefined ? "" : String(call.version),
    id: call.id ?? "",
    parameters: parametersOf(call.parameters ?? {}),
    outputs: (call.outputs ?? []).map((name) => ({ name })),
    ...inputs,
  });
  return Buffer.from(requestType.encode(request).finish());
}

function modelInfer(client: GrpcClient, request: Buffer, { signal }: InferCall): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const call = client.makeUnaryRequest(
      "/inference.GRPCInferenceService/ModelInfer",
      (bytes: Buffer) => bytes,
      (bytes: Buffer) => bytes,
      request,
      new Metadata(),
      (error: ServiceError | null, response?: Buffer) => {
        if (error === null) resolve(response!);
        else reject(new Refusal(status[error.code] ?? error.code, error.details));
      },
    );
    signal?.addEventListener("abort", () => call.cancel(), { once: true });
  });
}

function declarationOf({ name, datatype, shape }: NamedTensor) {
  return { name, datatype, shape };
}

/** Fields of `InferTensorContents`. FP16 and BF16 have none: a client can only try the field of FP32. */
const contentsFields: Record<DataType, string> = {
  BOOL: "boolContents",
  INT8: "intContents",
  INT16: "intContents",
  INT32: "intContents",
  INT64: "int64Contents",
  UINT8: "uintContents",
  UINT16: "uintContents",
  UINT32: "uintContents",
  UINT64: "uint64Contents",
  FP16: "fp32Contents",
  BF16: "fp32Contents",
  FP32: "fp32Contents",
  FP64: "fp64Contents",
  BYTES: "bytesContents",
};

function contentsOf({ datatype, elements }: NamedTensor) {
  const values = elements.map((element) => {
    if (typeof element === "bigint") return String(element);
    return datatype === "BOOL" ? element === 1 : element;
  });
  return { [contentsFields[datatype]]: values };
}

function parametersOf(parameters: Readonly<Record<string, Parameter>>) {
  return Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name, parameterOf(value)]));
}

function parameterOf(value: Parameter) {
  if (typeof value === "string") return { stringParam: value };
  if (typeof value === "boolean") return { boolParam: value };
  if (typeof value === "bigint") return { int64Param: String(value) };
  return Number.isInteger(value) ? { int64Param: value } : { doubleParam: value };
}

interface GrpcAnswer {
  readonly modelName: string;
  readonly modelVersion: string;
  readonly id: string;
  readonly outputs: readonly { name: string; datatype: DataType; shape: string[] }[];
  readonly rawOutputContents: readonly Uint8Array[];
}

/** The answer in a `ModelInferResponse`. */
export function answerOf(response: protobuf.Message): Answer {
  const options = { longs: String, defaults: true };
  const answer = responseType.toObject(response, options) as GrpcAnswer;
  return {
    model: answer.modelName,
    version: answer.modelVersion,
    id: answer.id === "" ? undefined : answer.id,
    outputs: answer.outputs.map(({ name, datatype, shape }, i) => ({
      name,
      datatype,
      shape: shape.map(Number),
      elements: fromWire(datatype, answer.rawOutputContents[i]!),
    })),
  };
}
