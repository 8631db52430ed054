import type { ManagementOperation, ManagementRoute } from "@tritonjs/core/extension";
import { errorFor } from "@tritonjs/protocol";
import { emptyResponse, jsonResponse, type V2Response } from "../exchange/response.js";
import { decodeText } from "../json/text.js";
import type { PlainJson } from "../json/write-json.js";
import type { HttpExchange, Route } from "./route.js";

/** Largest body of a route that does not say how large it may be, in bytes. */
const MAX_BODY_BYTES = 1024 * 1024;

/** Makes the routes of a server's extensions. Requests and answers are plain JSON. */
export function extensionRoutes(routes: readonly ManagementRoute[] = []): Route[] {
  return routes.map((route) => {
    const { get, post, group } = route;
    const path = pathPattern(route.path);
    return {
      path,
      methods: [...(get ? (["GET"] as const) : []), ...(post ? (["POST"] as const) : [])],
      group,
      errorType: "application/json",
      async handle(exchange) {
        const groups = path.exec(exchange.request.path)!.groups ?? {};
        const names = Object.fromEntries(Object.entries(groups).map(([name, part]) => [name, decoded(part)]));
        if (exchange.request.method === "GET") return run(get!, { names, body: {} });
        return run(post!, { names, body: await readObject(exchange, route.maxBodyBytes ?? MAX_BODY_BYTES) });
      },
    };
  });
}

/** `models/{model}/recent` as a pattern of the whole path. */
function pathPattern(path: string): RegExp {
  const parts = path.split("/").map((part) => {
    const [, name] = /^\{(\w+)\}$/.exec(part) ?? [];
    return name === undefined ? part.replace(/[^\w-]/g, "\\$&") : `(?<${name}>[^/]+)`;
  });
  return new RegExp(`^/v2/${parts.join("/")}$`);
}

/** Decodes a part of a path; a malformed one stays as it is. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

async function run(
  operation: ManagementOperation,
  request: Parameters<ManagementOperation["run"]>[0],
): Promise<V2Response> {
  const answer = await operation.run(request);
  if (answer === undefined) return emptyResponse(200, "application/json");
  if (!(answer instanceof Uint8Array)) return jsonResponse(answer as PlainJson);
  return { status: 200, headers: { "content-type": "application/octet-stream" }, body: answer };
}

/** Reads a JSON object; an empty body is an empty object. */
async function readObject(
  { request, memory, maxInputSize }: HttpExchange,
  maxBytes: number,
): Promise<Readonly<Record<string, unknown>>> {
  const body = await request.readBody(memory, Math.min(maxInputSize, maxBytes));
  if (body.length === 0) return {};
  if (body.length > maxBytes) {
    throw errorFor(
      "INVALID_BODY",
      `POST ${request.path}: expected at most ${maxBytes} bytes, got ${body.length}`,
    );
  }
  let given: unknown;
  try {
    given = JSON.parse(decodeText(body));
  } catch (cause) {
    throw errorFor("INVALID_BODY", `POST ${request.path}: expected JSON in the body`, { cause });
  }
  if (typeof given === "object" && given !== null && !Array.isArray(given)) {
    return given as Readonly<Record<string, unknown>>;
  }
  throw errorFor("INVALID_BODY", `POST ${request.path}: expected an object in the body`);
}
