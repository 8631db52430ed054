import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { repositoryRoot } from "../support/repository.js";

const textOf = (path: string) => readFileSync(join(repositoryRoot, "examples", path), "utf8");

/** The files of each app that call models. The definitions of models in TypeScript are in other files. */
const APPS = {
  "a page": ["browser-and-edge/page/page.ts"],
  "Next.js": ["mount-next/inference.ts", "mount-next/app/api/flowers/route.ts"],
  "a worker in Hono": ["browser-and-edge/edge-worker.ts"],
  "Express with a second service": ["mount-fetch/express.ts", "mount-fetch/gateway.ts"],
  "a command": ["typed-command/flower.ts", "typed-command/main.ts"],
};

describe("an example app that calls models by their types", () => {
  it.each(Object.entries(APPS))("%s has no specification of a tensor", (_, paths) => {
    for (const path of paths) {
      const specifications = textOf(path).match(
        /\b(?:dtype|datatype|data_type|shape|dims|inputs|outputs)\b\s*:.*/g,
      );
      expect({ path, specifications }).toEqual({ path, specifications: null });
    }
  });

  const tritonjs = fileURLToPath(new URL("./main.js", import.meta.resolve("@tritonjs/cli")));
  /** The text that is left after the formatter has run. */
  const unformatted = (text: string) => text.replace(/[\s"',;]/g, "");

  it.each(["typed-command", "mount-next"])(
    "the types of %s are those that its script writes",
    async (name) => {
      const folder = join(repositoryRoot, "examples", name);
      const { scripts } = JSON.parse(textOf(`${name}/package.json`)) as { scripts: { types: string } };
      const options = scripts.types.replace(/^.* types /, "types ").split(" ");
      const written = options.filter((option, i) => option !== "--out" && options[i - 1] !== "--out");
      const { stdout } = await promisify(execFile)(process.execPath, [tritonjs, ...written], { cwd: folder });
      expect(unformatted(textOf(`${name}/models.d.ts`))).toBe(unformatted(stdout));
    },
  );
});
