import { emptyResponse, faultResponse } from "../exchange/response.js";
import { publicReason } from "./public-reason.js";
import { modelRoutePath, type Route } from "./route.js";

/**
 * Liveness, readiness, and readiness of a model. The status is the answer. The body for a model that is not ready is
 * Triton's, with the reason if one is known. Nobody needs a token for it, so the reason has no absolute path.
 */
export const healthRoutes: readonly Route[] = [
  {
    path: /^\/v2\/health\/live$/,
    methods: ["GET"],
    group: "health",
    errorType: "text/plain",
    handle: ({ service }) => emptyResponse(service.isLive() ? 200 : 400, "text/plain"),
  },
  {
    path: /^\/v2\/health\/ready$/,
    methods: ["GET"],
    group: "health",
    errorType: "text/plain",
    handle: async ({ service }) => emptyResponse((await service.checkReady()) ? 200 : 400, "text/plain"),
  },
  {
    path: modelRoutePath("ready"),
    methods: ["GET"],
    group: "health",
    errorType: "text/plain",
    async handle({ service, model, version }) {
      const { ready, reason } = await service.modelReadiness(model, version);
      if (ready) return emptyResponse(200, "text/plain");
      const shown = reason === "" ? undefined : publicReason(reason, model);
      return faultResponse(400, "Model version not ready", "text/plain", {}, { reason: shown });
    },
  },
];
