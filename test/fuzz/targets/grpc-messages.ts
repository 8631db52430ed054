import { grpc } from "@tritonjs/grpc";
import { decodeMessage, grpc as grpcMessages, inference } from "@tritonjs/protocol/grpc";
import { expectThat, type FuzzTarget } from "../engine/target.js";
import { protobuf } from "../structures/protobuf.js";
import type { Structure } from "../structures/structure.js";
import { expectNoException } from "../support/answers.js";
import { GrpcCalls } from "../support/grpc-calls.js";
import { GRPC_METHODS } from "../support/grpc-seeds.js";
import { openIdentityModels, V2_TOKENS } from "../support/identity-models.js";

/** Protobuf messages of all methods over real HTTP/2 streams. The first byte of an input is the method. */
export async function open(): Promise<FuzzTarget> {
  const { triton } = await openIdentityModels();
  const { addresses } = await triton.serve({
    frontends: [grpc({ port: 0, maxReceiveMessageSize: 1 << 20, reflection: true })],
  });
  const calls = new GrpcCalls(addresses.grpc!.port);
  const seeds = GRPC_METHODS.flatMap(({ messages }, method) =>
    messages.map((message) => Buffer.concat([Buffer.of(method), message])),
  );
  return {
    seeds,
    tokens: [
      ...V2_TOKENS,
      "config",
      "file:1/x",
      "log_file",
      "trace_file",
      "trace_level",
      Buffer.of(0xff, 0xff, 0xff, 0x7f),
    ],
    structure: afterMethod,
    lanes: 16,
    async run(input) {
      const { path } = GRPC_METHODS[(input[0] ?? 0) % GRPC_METHODS.length]!;
      const answer = await calls.call(path, input.subarray(1));
      const name = path.slice(path.lastIndexOf("/") + 1);
      expectThat(answer.status !== undefined, () => `${name}: no status, reset ${answer.resetCode}`);
      expectThat(answer.status! >= 0 && answer.status! <= 16, () => `${name}: status ${answer.status}`);
      expectNoException(answer.message);
      if (answer.status === 0) for (const message of answer.messages) checkAnswer(name, message);
      return `${name} ${answer.status}`;
    },
    async check() {
      const answer = await calls.call(GRPC_METHODS[0]!.path, GRPC_METHODS[0]!.messages[0]!);
      expectThat(answer.status === 0, () => `status ${answer.status}: ${answer.message}`);
      const { id, rawOutputContents } = decodeMessage(inference.ModelInferResponse, answer.messages[0]!);
      expectThat(id === "a" && rawOutputContents![0]!.every((byte) => byte === 0x3f), () => "another answer");
    },
    async close() {
      calls.close();
      await triton.close();
    },
  };
}

function checkAnswer(name: string, message: Buffer): void {
  if (name === "ModelStreamInfer") {
    const { errorMessage, inferResponse } = decodeMessage(inference.ModelStreamInferResponse, message);
    expectNoException(errorMessage ?? "");
    expectThat(
      inferResponse != null || errorMessage !== "",
      () => "an answer without a response and an error",
    );
  } else if (name === "ServerReflectionInfo") {
    decodeMessage(grpcMessages.reflection.v1.ServerReflectionResponse, message);
  } else if (name !== "Check") {
    const type = inference[`${name}Response` as "ModelInferResponse"];
    decodeMessage(type, message);
  }
}

/** The first byte is the method; the rest is its message. */
const afterMethod: Structure = {
  mutate(input, source) {
    const { random, other } = source;
    const method = random.chance(0.03) ? random.below(GRPC_METHODS.length) : (input[0] ?? 0);
    const message = protobuf.mutate(input.subarray(1), { ...source, other: other.subarray(1) });
    return Buffer.concat([Buffer.of(method), message]);
  },
};
