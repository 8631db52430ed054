import type { LoadParameters } from "@tritonjs/core/types";
import { TritonError } from "@tritonjs/protocol";
import { readJson } from "../exchange/loop-turns.js";
import { latin1Text } from "../exchange/request.js";
import { emptyResponse, jsonResponse } from "../exchange/response.js";
import { asBytes, find, type JsonValue, members } from "../json/json-value.js";
import { decodeText } from "../json/text.js";
import type { HttpExchange, Route } from "./route.js";

/** The model repository: the index of the models with their states, loading and unloading. */
export const repositoryRoutes: readonly Route[] = [
  {
    path: /^\/v2\/repository(?:\/(?<repository>[^/]+))?\/index$/,
    methods: ["POST"],
    group: "model-repository",
    errorType: "application/json",
    async handle(exchange) {
      const ready = await readOptionalJson(exchange, (json) => find(json, "ready"));
      if (ready !== undefined && typeof ready !== "boolean") {
        throw new TritonError("INVALID_ARG", "Invalid value for 'ready': expected a boolean", {
          reason: "INVALID_PARAMETER",
        });
      }
      const index = await exchange.service.repositoryIndex(ready ?? false);
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
      const parameters = await readOptionalJson(exchange, loadParameters);
      await exchange.service.loadModel(exchange.model, parameters);
      return emptyResponse(200, "application/json");
    },
  },
  {
    path: /^\/v2\/repository(?:\/(?<repository>[^/]+))?\/models\/(?<model>[^/]+)\/unload$/,
    methods: ["POST"],
    group: "model-repository",
    errorType: "application/json",
    async handle(exchange) {
      refuseRepository(exchange);
      const given = await readOptionalJson(exchange, (json) =>
        find(find(json, "parameters"), "unload_dependents"),
      );
      await exchange.service.unloadModel(exchange.model, { unloadDependents: given === true });
      return emptyResponse(200, "application/json");
    },
  },
];

function refuseRepository({ repository }: HttpExchange): void {
  if (repository !== "") {
    throw new TritonError("UNSUPPORTED", "'repository_name' specification is not supported");
  }
}

/** Parameters of a load request: a configuration, and files in base64 under `file:<path>`. */
function loadParameters(body: JsonValue | undefined): LoadParameters {
  const given = find(body, "parameters");
  if (given === undefined) return {};
  const files = new Map<string, Uint8Array>();
  let config: string | undefined;
  for (const [name, value] of members(given)) {
    const bytes = asBytes(value);
    if (name === "config") config = decodeText(bytes);
    else if (name.startsWith("file:")) files.set(name.slice("file:".length), fromBase64(name, bytes));
    else throw new TritonError("INTERNAL", "unexpected error on creating Triton parameter");
  }
  return { config, files };
}

function fromBase64(name: string, bytes: Uint8Array): Uint8Array {
  const text = latin1Text(bytes);
  if (!isBase64(text)) {
    throw new TritonError("INVALID_ARG", `load parameter '${name}': expected base64`, {
      reason: "INVALID_LOAD_REQUEST",
    });
  }
  return Buffer.from(text, "base64");
}

/**
 * True for base64 with white space anywhere. White space is removed first: a pattern for both would take quadratic time
 * for a long run of spaces.
 */
function isBase64(text: string): boolean {
  return /^[A-Za-z0-9+/]*={0,2}$/.test(text.replace(/\s+/g, ""));
}

/** Reads the JSON body of a request. `use` takes it, or undefined for an empty body. */
async function readOptionalJson<T>(
  { request, memory, maxInputSize }: HttpExchange,
  use: (json: JsonValue | undefined) => T,
): Promise<T> {
  const body = await request.readBody(memory, maxInputSize);
  return body.length === 0 ? use(undefined) : readJson(request, body, use);
}
