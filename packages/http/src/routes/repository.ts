import { TritonError } from "@tritonjs/core";
import { jsonResponse } from "../exchange/response.js";
import { asBoolean, find } from "../json/access.js";
import type { JsonValue } from "../json/json-value.js";
import { parseJson } from "../json/parse-json.js";
import type { Exchange, Route } from "./route.js";

/** The model repository: which models there are, and in which state. */
export const repositoryRoutes: readonly Route[] = [
  {
    path: /^\/v2\/repository(?:\/(?<repository>[^/]+))?\/index$/,
    methods: ["POST"],
    group: "model-repository",
    errorType: "application/json",
    async handle(exchange) {
      const ready = find(await readOptionalJson(exchange), "ready");
      const index = exchange.service.repositoryIndex(ready === undefined ? false : asBoolean(ready));
      return jsonResponse(
        index.map(({ name, version, state, reason }) => ({ name, version, state, reason })),
      );
    },
  },
  {
    path: /^\/v2\/repository(?:\/(?<repository>[^/]+))?\/models\/(?<model>[^/]+)\/load$/,
    methods: ["POST"],
    group: "model-repository",
    errorType: "application/json",
    async handle(exchange) {
      refuseRepository(exchange);
      await readOptionalJson(exchange);
      throw controlNotAllowed();
    },
  },
  {
    path: /^\/v2\/repository(?:\/(?<repository>[^/]+))?\/models\/(?<model>[^/]+)\/unload$/,
    methods: ["POST"],
    group: "model-repository",
    errorType: "application/json",
    handle(exchange) {
      refuseRepository(exchange);
      throw controlNotAllowed();
    },
  },
];

function refuseRepository({ repository }: Exchange): void {
  if (repository !== "") {
    throw new TritonError("UNSUPPORTED", "'repository_name' specification is not supported");
  }
}

/** Models come and go with the program that binds them: clients cannot load or unload any. */
function controlNotAllowed(): TritonError {
  return new TritonError("UNAVAILABLE", "explicit model load / unload is not allowed if polling is enabled");
}

/** The JSON body of a request that may have none. */
export async function readOptionalJson({ request, maxInputSize }: Exchange): Promise<JsonValue | undefined> {
  const body = await request.readBody(maxInputSize);
  return body.length === 0 ? undefined : parseJson(body);
}
