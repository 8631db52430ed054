import type { GrpcCase } from "../support/grpc/grpc-case.js";
import type { Models } from "../support/served-models.js";
import type { GrpcDifference } from "./grpc/grpc-draft.js";
import { inferenceRules } from "./grpc/inference.js";
import { sharedMemoryRules } from "./grpc/shared-memory.js";
import { statisticsRules } from "./grpc/statistics.js";
import { missingInputsBrackets } from "./texts.js";

/**
 * Where the gRPC frontend answers otherwise than the recorded one.
 *
 * @param cases all of them in their order: what a call answers depends on those before it
 */
export function grpcDifferences(models: Models, cases: readonly GrpcCase[]): readonly GrpcDifference[] {
  return [
    missingInputsBrackets(),
    ...inferenceRules(models),
    ...sharedMemoryRules(cases),
    ...statisticsRules(models, cases),
  ];
}
