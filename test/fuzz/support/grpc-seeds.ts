import { encodeMessage, grpc, inference, inferencePath } from "@tritonjs/protocol/grpc";

/** A method, and good messages for it. */
export interface GrpcMethod {
  readonly path: string;
  readonly messages: readonly Uint8Array[];
}

const infer = (request: object) => encodeMessage(inference.ModelInferRequest, request as never);
const input = (datatype: string, shape: readonly number[], more: object = {}) => ({
  name: "IN",
  datatype,
  shape,
  ...more,
});

/** Good inferences in all forms. */
export const GRPC_INFER: readonly Uint8Array[] = [
  infer({
    modelName: "fp32",
    id: "a",
    inputs: [input("FP32", [2])],
    rawInputContents: [Buffer.alloc(8, 0x3f)],
  }),
  infer({
    modelName: "int64",
    inputs: [input("INT64", [2], { contents: { int64Contents: [1, -5] } })],
    outputs: [{ name: "OUT", parameters: { classification: { int64Param: 2 } } }],
  }),
  infer({
    modelName: "bytes",
    inputs: [input("BYTES", [2], { contents: { bytesContents: [Buffer.from("a"), Buffer.alloc(0)] } })],
  }),
  infer({
    modelName: "bytes",
    inputs: [input("BYTES", [1])],
    rawInputContents: [Buffer.from([2, 0, 0, 0, 0x61, 0x62])],
  }),
  infer({ modelName: "bool", inputs: [input("BOOL", [2], { contents: { boolContents: [true, false] } })] }),
  infer({ modelName: "uint8", inputs: [input("UINT8", [1], { contents: { uintContents: [7] } })] }),
  infer({
    modelName: "batched",
    modelVersion: "1",
    inputs: [input("FP32", [2, 1])],
    rawInputContents: [Buffer.alloc(8)],
    parameters: {
      priority: { uint64Param: 1 },
      timeout: { int64Param: 5 },
      x: { stringParam: "y" },
      d: { doubleParam: 0.5 },
    },
  }),
  infer({
    modelName: "sequence",
    inputs: [input("FP32", [1, 1])],
    rawInputContents: [Buffer.alloc(4)],
    parameters: {
      sequence_id: { int64Param: 3 },
      sequence_start: { boolParam: true },
      sequence_end: { boolParam: true },
    },
  }),
  infer({ modelName: "stream", inputs: [input("FP32", [3])], rawInputContents: [Buffer.alloc(12)] }),
];

const one = <T>(
  name: string,
  type: { encode(message: T, writer?: never): unknown },
  message: object,
): GrpcMethod => ({
  path: inferencePath(name),
  messages: [encodeMessage(type, message as T)],
});

/** Every method of the gRPC services. */
export const GRPC_METHODS: readonly GrpcMethod[] = [
  { path: inferencePath("ModelInfer"), messages: GRPC_INFER },
  { path: inferencePath("ModelStreamInfer"), messages: GRPC_INFER },
  one("ServerLive", inference.ServerLiveRequest, {}),
  one("ServerReady", inference.ServerReadyRequest, {}),
  one("ModelReady", inference.ModelReadyRequest, { name: "fp32", version: "1" }),
  one("ServerMetadata", inference.ServerMetadataRequest, {}),
  one("ModelMetadata", inference.ModelMetadataRequest, { name: "fp32", version: "1" }),
  one("ModelConfig", inference.ModelConfigRequest, { name: "batched" }),
  one("ModelStatistics", inference.ModelStatisticsRequest, { name: "fp32" }),
  one("RepositoryIndex", inference.RepositoryIndexRequest, { ready: true }),
  one("RepositoryModelLoad", inference.RepositoryModelLoadRequest, {
    modelName: "nothing",
    parameters: { config: { stringParam: "{}" }, "file:1/m": { bytesParam: Buffer.from("x") } },
  }),
  one("RepositoryModelUnload", inference.RepositoryModelUnloadRequest, {
    modelName: "nothing",
    parameters: { unload_dependents: { boolParam: true } },
  }),
  one("SystemSharedMemoryStatus", inference.SystemSharedMemoryStatusRequest, { name: "r" }),
  one("SystemSharedMemoryRegister", inference.SystemSharedMemoryRegisterRequest, {
    name: "r",
    key: "/k",
    offset: 1,
    byteSize: 8,
  }),
  one("SystemSharedMemoryUnregister", inference.SystemSharedMemoryUnregisterRequest, { name: "r" }),
  one("CudaSharedMemoryStatus", inference.CudaSharedMemoryStatusRequest, { name: "r" }),
  one("CudaSharedMemoryRegister", inference.CudaSharedMemoryRegisterRequest, {
    name: "r",
    rawHandle: Buffer.from("h"),
    deviceId: 0,
    byteSize: 8,
  }),
  one("CudaSharedMemoryUnregister", inference.CudaSharedMemoryUnregisterRequest, { name: "r" }),
  one("TraceSetting", inference.TraceSettingRequest, {
    modelName: "fp32",
    settings: { trace_rate: { value: ["5"] }, trace_level: { value: ["OFF"] } },
  }),
  one("LogSettings", inference.LogSettingsRequest, {
    settings: {
      log_info: { boolParam: false },
      log_verbose_level: { uint32Param: 0 },
      log_format: { stringParam: "default" },
    },
  }),
  {
    path: "/grpc.health.v1.Health/Check",
    messages: [encodeMessage(grpc.health.v1.HealthCheckRequest, { service: "" } as never)],
  },
  {
    path: "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    messages: [
      encodeMessage(grpc.reflection.v1.ServerReflectionRequest, { listServices: "" } as never),
      encodeMessage(grpc.reflection.v1.ServerReflectionRequest, {
        fileContainingSymbol: "inference.GRPCInferenceService",
      } as never),
    ],
  },
];
