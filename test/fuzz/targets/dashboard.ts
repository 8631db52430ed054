import { dashboard } from "@tritonjs/http/dashboard";
import type { FuzzTarget } from "../engine/target.js";
import { httpMessage } from "../structures/http-message.js";
import { fetchTarget } from "../support/fetch-target.js";
import { openIdentityModels, V2_TOKENS } from "../support/identity-models.js";

/** The paths of the dashboard, and changes of instances. Its event stream does not end, so only its head is read. */
export async function open(): Promise<FuzzTarget> {
  const { triton } = await openIdentityModels();
  const page = dashboard().open(triton);
  return fetchTarget({
    open: () => async (request) => {
      const response = await page(request);
      if (response.headers.get("content-type")?.startsWith("text/event-stream") !== true) return response;
      if (response.status === 200 && request.url.includes("/v2/")) return response;
      await response.body?.cancel();
      return new Response("{}", { status: 200 });
    },
    seeds: [
      ...[
        "",
        "/",
        "/main.js",
        "/assets/app.js",
        "/style.css",
        "/api/info",
        "/api/events",
        "/api/events/fp32/1",
      ].map((path) => httpMessage(`GET /dashboard${path}`)),
      httpMessage("POST /dashboard/api/instances/batched/1", '{"count": 2}'),
      httpMessage("GET /dashboard/v2/models/fp32"),
      httpMessage("POST /dashboard/v2/models/fp32/generate", '{"IN": [1]}'),
    ],
    tokens: [
      ...V2_TOKENS,
      "api",
      "events",
      "instances",
      "assets",
      "count",
      "%2f",
      "%ff",
      "dashboard",
      "//",
      "/../",
    ],
    headers: ["sec-fetch-site: cross-site", "sec-fetch-site: same-origin", "sec-fetch-site: none"],
    close: () => triton.close(),
  });
}
