import type { InferenceService } from "@tritonjs/core/frontend";
import { inference, inferencePath } from "@tritonjs/grpc-messages";
import { type Method, unary } from "../transport/method.js";

/** `ModelStatistics`: of one model, or of all for an empty name. */
export function statisticsMethods(service: InferenceService): Method[] {
  return [
    unary(
      {
        path: inferencePath("ModelStatistics"),
        protocol: "statistics",
        request: inference.ModelStatisticsRequest,
        response: inference.ModelStatisticsResponse,
      },
      ({ name, version }) => ({
        modelStats: service.statistics(name, version).map(({ batchStats, memoryUsage, ...report }) => ({
          ...report,
          batchStats: [...batchStats],
          memoryUsage: [...memoryUsage],
        })),
      }),
    ),
  ];
}
