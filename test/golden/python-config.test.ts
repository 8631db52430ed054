import { inspectRepository, toConfigJson } from "@tritonjs/core";
import { describe } from "vitest";
import { hasPython, withoutPython } from "../support/python.js";
import { RepositoryOnDisk } from "../support/repository-on-disk.js";
import { compareValues } from "./support/compare-values.js";
import type { ConfigCase } from "./support/config-case.js";
import { toJsonValue } from "./support/json-value.js";
import { loadLines } from "./support/load-cases.js";
import { replay } from "./support/replay.js";

/** Completes the configuration of a recorded Python model by its own code. */
async function run({ files, config, index, load }: ConfigCase): Promise<readonly string[]> {
  const paths = Object.entries(files).map(([path, text]) => [`m/${path}`, String(text)]);
  await using repository = await RepositoryOnDisk.create(Object.fromEntries(paths));
  const [model] = await inspectRepository([repository.path]);
  const errors = model!.findings.filter(({ severity }) => severity === "error");
  if (load?.status === 200) {
    if (model!.config === undefined) {
      return [`expected a configuration, got "${errors.map(({ message }) => message)}"`];
    }
    return compareValues(toJsonValue(config), toJsonValue(toConfigJson(model!.config)));
  }
  const expected = index?.[0]?.reason?.replace(/^[\w ]+: /, "").split("\n")[0];
  const got = errors[0]?.message;
  return got === expected ? [] : [`expected the error "${expected}", got "${got}"`];
}

describe.skipIf(!hasPython)(`recorded completions by Python models${withoutPython}`, () => {
  replay<ConfigCase>({
    cases: loadLines<ConfigCase>("config/autocomplete.jsonl")
      .filter(({ files }) => Object.keys(files).some((path) => path.endsWith("/model.py")))
      .map((recorded) => ({ ...recorded, id: `autocomplete/${recorded.id}` })),
    subject: ({ id }) => ({ area: id, features: new Set(), operations: [], flags: [] }),
    run,
  });
});
