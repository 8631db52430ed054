import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { npmTool } from "../package/foreign-tools.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

const validator = npmTool(
  "action-validator",
  "action-validator",
  "@action-validator/cli@0.6.0 @action-validator/core@0.6.0",
  "@action-validator/cli/cli.mjs",
);
const folder = join(repositoryRoot, ".github/workflows");

it.skipIf(validator.path === undefined).each(readdirSync(folder))(
  `the workflow %s is valid by the schema of GitHub${validator.note}`,
  async (file) => {
    const { code, stdout, stderr } = await Program.node(validator.path!, [join(folder, file)], repositoryRoot)
      .ended;
    expect({ code, errors: stdout + stderr }).toEqual({ code: 0, errors: "" });
  },
);
