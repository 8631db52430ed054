import { toStatisticsJson } from "../encode/statistics-json.js";
import { jsonResponse } from "../exchange/response.js";
import { modelRoutePath, type Route } from "./route.js";

/** Statistics of one model or of all. A model with the name `stats` has none of its own. */
export const statisticsRoutes: readonly Route[] = [/^\/v2\/models\/stats$/, modelRoutePath("stats")].map(
  (path) => ({
    path,
    methods: ["GET"],
    group: "statistics",
    errorType: "application/json",
    handle({ service, model, version }) {
      return jsonResponse(toStatisticsJson(service.statistics(model, version)));
    },
  }),
);
