import { readBody } from "../decode/read-body.js";
import { asBoolean, find } from "../json/access.js";
import type { JsonValue } from "../json/json-value.js";
import { parseJson } from "../json/parse-json.js";
import { sendJson } from "./reply.js";
import type { Exchange, Route } from "./route.js";

/** The model repository: which models there are, and in which state. */
export const repositoryRoutes: readonly Route[] = [
  {
    path: /^\/v2\/repository(?:\/[^/]+)?\/index$/,
    methods: ["POST"],
    group: "model-repository",
    errorType: "application/json",
    async handle(exchange) {
      const ready = find(await readOptionalJson(exchange), "ready");
      const index = exchange.service.repositoryIndex(ready === undefined ? false : asBoolean(ready));
      sendJson(
        exchange.reply,
        index.map(({ name, version, state, reason }) => ({ name, version, state, reason })),
      );
    },
  },
];

/** The JSON body of a request that may have none. */
export async function readOptionalJson({ request, maxInputSize }: Exchange): Promise<JsonValue | undefined> {
  const body = await readBody(request.raw, maxInputSize);
  return body.length === 0 ? undefined : parseJson(body);
}
