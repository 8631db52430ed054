import type { GrpcCase } from "../support/grpc/grpc-case.js";
import type { Models } from "../support/served-models.js";
import type { GrpcDifference } from "./grpc/grpc-draft.js";
import { inferenceRules } from "./grpc/inference.js";
import { sharedMemoryRules } from "./grpc/shared-memory.js";
import { statisticsRules } from "./grpc/statistics.js";
import { missingInputsBrackets } from "./texts.js";

/**
 * Differences of the gRPC frontend from the recorded one.
 * @param cases all cases in order: the answer to a call depends on earlier calls
 */
export function grpcDifferences(models: Models, cases: readonly GrpcCase[]): readonly GrpcDifference[] {
  return [
    missingInputsBrackets(),
    ...inferenceRules(models),
    ...sharedMemoryRules(cases),
    ...statisticsRules(models, cases),
  ];
}
