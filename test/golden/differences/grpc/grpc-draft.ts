import type { UnaryResult } from "../../support/grpc/client.js";
import type { GrpcCase } from "../../support/grpc/grpc-case.js";
import type { Difference, Draft } from "../difference.js";

/** A rule about gRPC calls; the outcome is the end of a unary call, `undefined` for streams and parallel calls. */
export type GrpcDifference = Difference<GrpcCase, UnaryResult | undefined>;

/** Makes the end of a call an error. */
export function answerStatus(draft: Draft<GrpcCase>, code: string, details: string): void {
  draft.response = null;
  draft.status = { code, details };
}

/** The end of the recorded call. */
export function detailsOf({ status }: Pick<GrpcCase, "status">): string {
  return status?.details ?? "";
}

/** A tensor of the request or the response by its name, from the raw contents. */
export function rawInput({ request }: GrpcCase | Draft<GrpcCase>, name: string): Buffer | undefined {
  const inputs = (request?.inputs ?? []) as { name: string }[];
  const contents = (request?.raw_input_contents ?? []) as string[];
  const bytes = contents[inputs.findIndex((input) => input.name === name)];
  return bytes === undefined ? undefined : Buffer.from(bytes, "base64");
}
