import type { Subject } from "../coverage.js";
import { featuresNeeded, type Models } from "../served-models.js";
import { type HttpCase, stepsOf } from "./http-case.js";

/** The operation behind a path: `infer`, `config`, `metadata` of a model, `index`, `sharedmemory`, ... */
export function operationOf(path: string): string {
  const [, version, first = "", ...rest] = path.split("/");
  if (version !== "v2") return path;
  if (first.endsWith("sharedmemory")) return "sharedmemory";
  if (/\/trace\/setting$/.test(path)) return "trace";
  if (first === "models" && rest.length > 0) return operationOfModel(rest);
  return rest.at(-1) ?? first;
}

function operationOfModel([, second, third, fourth]: string[]): string {
  if (second === "versions") return fourth ?? (third === undefined ? "versions" : "metadata");
  return second ?? "metadata";
}

/** What an HTTP case asks of the server. */
export function httpSubject(recorded: HttpCase, models: Models): Subject {
  const paths = stepsOf(recorded).map(({ request }) => request.path);
  const names = paths.flatMap((path) => /^\/v2\/models\/([^/]+)/.exec(path)?.[1] ?? []);
  return {
    area: recorded.area,
    features: featuresNeeded(models, names),
    operations: paths.map(operationOf),
    flags: recorded.server_flags ?? [],
  };
}
