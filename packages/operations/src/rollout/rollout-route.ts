import type { ManagementRequest, ManagementRoute } from "@tritonjs/core/extension";
import type { RolloutReport } from "./rollout.js";

/** Module of browsers that shows the reports of rollouts. */
export const ROLLOUT_VIEW = new URL("../../page/rollouts.js", import.meta.url);

const count = { type: "integer", format: "int64", minimum: 0 };

const REQUEST = {
  type: "object",
  description: "`action` alone, `share` alone, or the options of a new rollout.",
  properties: {
    action: { type: "string", enum: ["pause", "resume", "promote", "rollback", "remove"] },
    from: count,
    to: count,
    share: { type: "number", minimum: 0, maximum: 100 },
  },
  additionalProperties: true,
};

const REPORT = {
  type: "object",
  properties: {
    model: { type: "string" },
    from: count,
    to: count,
    state: { type: "string", enum: ["running", "paused", "promoted", "rolled_back"] },
    share: { type: "number" },
    verdict: { type: "object" },
  },
};

/** The operations of clients on rollouts: reads the rollout of a model, starts one or changes it. Triton has none. */
export function rolloutRoute(
  read: (model: string) => RolloutReport,
  change: (model: string, request: ManagementRequest["body"]) => Promise<RolloutReport>,
): ManagementRoute {
  return {
    path: "repository/models/{model}/rollout",
    group: "model-repository",
    loadParameter: "rollout",
    get: {
      id: "rollout",
      summary: "The rollout of a model",
      answer: REPORT,
      run: ({ names }) => read(names.model!),
    },
    post: {
      id: "changeRollout",
      summary: "Start or change a rollout",
      body: REQUEST,
      answer: REPORT,
      run: ({ names, body }) => change(names.model!, body),
    },
  };
}
