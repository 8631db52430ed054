import { healthRoutes } from "./health.js";
import { inferRoute } from "./infer.js";
import { metadataRoutes } from "./metadata.js";
import { repositoryRoutes } from "./repository.js";
import type { Route } from "./route.js";
import { statisticsRoutes } from "./statistics.js";

/** All routes, in the order in which they are tried: `v2/models/stats` stands before the model routes. */
export const routes: readonly Route[] = [
  inferRoute,
  ...statisticsRoutes,
  ...healthRoutes,
  ...metadataRoutes,
  ...repositoryRoutes,
];

/** A route and what the path told it. */
export interface RouteMatch {
  readonly route: Route;
  readonly model: string;
  readonly version: string;
}

/** The route of a path, which is taken as it was sent: nothing is decoded, and a trailing slash counts. */
export function matchRoute(path: string): RouteMatch | undefined {
  for (const route of routes) {
    const match = route.path.exec(path);
    if (match === null) continue;
    return { route, model: match.groups?.model ?? "", version: match.groups?.version ?? "" };
  }
  return undefined;
}
