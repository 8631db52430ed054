import type { InferenceService, WebPages } from "@tritonjs/core/frontend";
import { TritonError } from "@tritonjs/protocol";
import { dashboardHandler } from "./dashboard-handler.js";
import type { DashboardOptions } from "./dashboard-options.js";

/**
 * The dashboard: a live page of all models, with a form for inference. It needs the access token if the groups
 * `statistics`, `model-repository`, `logging` or `model-config` do. While nobody watches, it costs nothing.
 *
 * Serve it on the port of the metrics or of HTTP, or in an app: `open` makes a handler of the web platform, which
 * `toNodeListener` of `@tritonjs/http` turns into one for `node:http` and Express.
 *
 * @throws TritonError INVALID_ARG for a path that does not begin with a slash, or ends with one.
 * @example
 * ```ts
 * await triton.serve({ frontends: [http(), metrics({ pages: dashboard() })] });
 * app.all("/dashboard/*", (context) => page(context.req.raw)); // Hono, with page = dashboard().open(triton.service)
 * ```
 */
export function dashboard(options: DashboardOptions = {}): WebPages {
  const { path = "/dashboard" } = options;
  if (!/^(\/[^/?#]+)+$/.test(path)) {
    throw new TritonError(
      "INVALID_ARG",
      `dashboard path: expected a path such as "/dashboard", got "${path}"`,
      {
        reason: "INVALID_OPTION",
      },
    );
  }
  return { path, open: (service: InferenceService) => dashboardHandler(service, { ...options, path }) };
}
