import { echoed } from "../behaviours/http-models.js";
import { ANY } from "../compare-values.js";
import type { JsonValue } from "../json-value.js";
import { levelNames } from "../level-names.js";
import type { Arrangement } from "./compare-response.js";
import { type HttpCase, stepsOf } from "./http-case.js";

type JsonObject = Map<string, JsonValue>;

/** Evens out parts that the protocol does not define: see each rule. */
export function arrangementOf(recorded: HttpCase): Arrangement {
  const paths = stepsOf(recorded).map(({ request }) => request.path);
  const ofAllModels = paths.some((path) => path === "/v2/models/stats");
  const echoes = paths.some((path) => /^\/v2\/models\/(params_echo|llm|llm_batch)\//.test(path));
  return {
    both(body) {
      if (Array.isArray(body) && recorded.repository === "explicit") return indexOf(recorded, body);
      if (!(body instanceof Map)) return body;
      withoutTraceback(body, "error");
      const text = body.get("error");
      if (typeof text === "string") body.set("error", levelNames(text));
      const arranged: JsonObject = new Map(body);
      const stats = arranged.get("model_stats");
      if (ofAllModels && Array.isArray(stats)) arranged.set("model_stats", namesOnly(stats));
      if (arranged.has("extensions")) arranged.set("version", ANY);
      if (recorded.unordered !== undefined) levelOrder(arranged);
      return arranged;
    },
    expected(body) {
      if (!(body instanceof Map)) return body;
      dropExampleParameters(body);
      if (echoes) changeScalars(placeOfParameters(body), (value) => exact(readDouble(value)));
      return body;
    },
    got(body) {
      if (!echoes || !(body instanceof Map) || !body.has("model_name")) return body;
      const seen = Object.entries(echoed.parameters) as [string, JsonValue][];
      if (seen.length > 0 && body.has("outputs")) body.set("parameters", new Map());
      const place = placeOfParameters(body);
      for (const [key, value] of seen) place.set(key, value);
      changeScalars(place, (value) => exact(readDouble(value)));
      return body;
    },
  };
}

/** The rows of the models of a case: effects of other cases on other models are not replayed. */
function indexOf(recorded: HttpCase, rows: JsonValue[]): JsonValue[] {
  const named = stepsOf(recorded).map(({ request }) => /\/models\/([^/]+)/.exec(request.path)?.[1]);
  return rows
    .filter((row): row is JsonObject => row instanceof Map && named.includes(String(row.get("name"))))
    .map(levelRow);
}

/** Unloading takes a moment or none, and a model without versions may give the reason. */
function levelRow(row: JsonObject): JsonObject {
  withoutTraceback(row, "reason");
  if (row.get("state") === "UNLOADING") row.set("state", "UNAVAILABLE").set("reason", "unloaded");
  return row.has("version") ? row : new Map([["name", row.get("name") ?? null]]);
}

/** Errors of a Python model include the lines of its code. */
function withoutTraceback(body: JsonObject, key: string): void {
  const value = body.get(key);
  if (typeof value === "string") body.set(key, value.replace(/\n\nAt:\n[\s\S]*?\n?(?=;\n|$)/, ""));
}

/** The recordings keep names and versions of the statistics of all models. */
function namesOnly(stats: JsonValue[]): JsonValue[] {
  const rows = stats.filter((row) => row instanceof Map);
  return rows.map((row) => new Map(["name", "version"].map((key) => [key, row.get(key) ?? null])));
}

/** The recorded identity backend adds four example parameters to every response. */
function dropExampleParameters(body: JsonObject): void {
  const parameters = body.get("parameters");
  if (!(parameters instanceof Map)) return;
  const examples = [...parameters.keys()].filter((name) => /^param[0-3]$/.test(name));
  for (const key of examples) parameters.delete(key);
  if (examples.length > 0 && parameters.size === 0) body.delete("parameters");
}

/** Response parameters have a place of their own; those of the generate extension are among the outputs. */
function placeOfParameters(body: JsonObject): JsonObject {
  if (!body.has("outputs")) return body;
  const parameters = body.get("parameters");
  return parameters instanceof Map ? parameters : new Map();
}

function changeScalars(place: JsonObject, change: (value: JsonValue) => JsonValue): void {
  for (const [key, value] of place) place.set(key, change(value));
}

/** The recorded model returns doubles as `double:` and their bits. */
function readDouble(value: JsonValue): JsonValue {
  const bits = typeof value === "string" ? /^double:([0-9a-f]{16})$/.exec(value)?.[1] : undefined;
  return bits === undefined ? value : Buffer.from(bits, "hex").readDoubleBE();
}

/** A number as a text that does not distinguish 1 from 1.0: JavaScript does not either. */
function exact(value: JsonValue): JsonValue {
  if (typeof value !== "number" && typeof value !== "bigint") return value;
  return Number.isInteger(Number(value)) ? `number ${BigInt(value)}` : `number ${value}`;
}

/** Which of two inputs a text names, and the order of equal classes, depend on a hash map. */
function levelOrder(body: JsonObject): void {
  const error = body.get("error");
  if (typeof error === "string") body.set("error", error.replace(/(?<=\binput )'INPUT\d'/g, "'INPUT'"));
  for (const output of (body.get("outputs") as JsonObject[] | undefined) ?? []) {
    const data = output.get("data");
    if (Array.isArray(data)) output.set("data", data.map(String).sort());
  }
}
