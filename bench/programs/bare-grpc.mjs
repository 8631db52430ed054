/* An echo over grpc-js alone, with the generated codec of @tritonjs/grpc. */
import { answerCalls, programOptions } from "../support/program.mjs";
import { codecOf, requireOf } from "../support/tree.mjs";

const { tree } = programOptions();
const grpc = requireOf(tree, "grpc")("@grpc/grpc-js");
const { decodeMessage, encodeMessage, inference } = await codecOf(tree);

/** Parameters that Triton's streams add to each response. */
const FINAL = { triton_final_response: { boolParam: true } };

const echo = ({ modelName, inputs, rawInputContents }) => ({
  modelName,
  modelVersion: "1",
  outputs: [{ name: "y", datatype: inputs[0].datatype, shape: inputs[0].shape }],
  rawOutputContents: rawInputContents,
});

const method = (path, streams, responseType, response) => ({
  path: `/inference.GRPCInferenceService/${path}`,
  requestStream: streams,
  responseStream: streams,
  requestDeserialize: (bytes) => decodeMessage(inference.ModelInferRequest, bytes),
  requestSerialize: () => Buffer.alloc(0),
  responseSerialize: (message) => encodeMessage(responseType, response(message)),
  responseDeserialize: (bytes) => bytes,
});

const server = new grpc.Server();
server.addService(
  {
    infer: method("ModelInfer", false, inference.ModelInferResponse, (message) => message),
    stream: method("ModelStreamInfer", true, inference.ModelStreamInferResponse, (inferResponse) => ({
      inferResponse: { ...inferResponse, parameters: FINAL },
    })),
  },
  {
    infer: (call, callback) => callback(null, echo(call.request)),
    stream: (call) => {
      call.on("data", (request) => call.write(echo(request)));
      call.on("end", () => call.end());
    },
  },
);
const port = await new Promise((resolve, reject) =>
  server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, bound) =>
    error ? reject(error) : resolve(bound),
  ),
);

answerCalls({ url: () => `127.0.0.1:${port}` });
