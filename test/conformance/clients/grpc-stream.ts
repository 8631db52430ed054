import type { ClientDuplexStream, ServiceError } from "@grpc/grpc-js";
import type protobuf from "protobufjs";
import { type Answer, type Client, type InferCall, Refusal, type Way } from "./client.js";
import { answerOf, encodeRequest, openGrpc, rawInputs, root } from "./grpc.js";

const streamResponseType = root.lookupType("inference.ModelStreamInferResponse");

/** Status reported for an error on a stream, which continues after it. */
export const STREAM_ERROR = "error message";

interface StreamAnswer extends protobuf.Message {
  readonly errorMessage: string;
  readonly inferResponse: protobuf.Message;
}

/** Sends one request on a stream. */
export function grpcStreamClient(way: Way, address: string): Client {
  const client = openGrpc(address);
  return {
    way,
    infer(call) {
      const stream = client.makeBidiStreamRequest(
        "/inference.GRPCInferenceService/ModelStreamInfer",
        (bytes: Buffer) => bytes,
        (bytes: Buffer) => streamResponseType.decode(bytes) as StreamAnswer,
      );
      stream.write(encodeRequest(call, rawInputs(call.inputs)));
      stream.end();
      return onlyAnswer(stream, call);
    },
    close: () => client.close(),
  };
}

function onlyAnswer(
  stream: ClientDuplexStream<Buffer, StreamAnswer>,
  { signal }: InferCall,
): Promise<Answer> {
  signal?.addEventListener("abort", () => stream.cancel(), { once: true });
  const answers: StreamAnswer[] = [];
  return new Promise((resolve, reject) => {
    stream.on("data", (answer: StreamAnswer) => answers.push(answer));
    stream.on("error", reject);
    stream.on("status", ({ code, details }: ServiceError) => {
      const [answer, ...others] = answers;
      if (code !== 0 || answer === undefined || others.length > 0) {
        reject(new Error(`${answers.length} answers, status ${code} ${details}`));
      } else if (answer.errorMessage !== "") reject(new Refusal(STREAM_ERROR, answer.errorMessage));
      else resolve(answerOf(answer.inferResponse));
    });
  });
}
