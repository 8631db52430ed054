import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";
import { npmTool } from "./foreign-tools.js";
import { PACKAGES, PackedPackages, type Project } from "./packed-packages.js";
import { consumer } from "./programs.js";

const INSTALL_TIMEOUT_MS = 300_000;
const COMPILE_TIMEOUT_MS = 180_000;

const versions = ["5.4", "5.9", "7.0"].map((version) => ({
  version,
  ...npmTool(
    `TypeScript ${version}`,
    `typescript-${version}`,
    `typescript@~${version}.0`,
    join("typescript", "bin", "tsc"),
  ),
}));

const packed = new PackedPackages();
let project: Project;
beforeAll(async () => {
  await packed.pack();
  project = await packed.install("types", PACKAGES);
  // `await using` is syntax of TypeScript 5.2.
  project.write("consumer.ts", consumer.replace("await using triton", "const triton"));
}, INSTALL_TIMEOUT_MS);
afterAll(() => packed.remove(), INSTALL_TIMEOUT_MS);

/** Ways to find modules. The newer versions differ in what they check. */
const RESOLUTIONS = [
  ["nodenext", "nodenext"],
  ["node16", "node16"],
  ["bundler", "esnext"],
] as const;
const OLDEST = versions[0]!.version;

const WITHOUT_SKIP_LIB_CHECK = new Set(["5.9", "7.0"]);

describe.each(versions)("TypeScript $version $note", ({ version, path }) => {
  it.skipIf(path === undefined).each(version === OLDEST ? RESOLUTIONS : RESOLUTIONS.slice(0, 1))(
    "compiles a program with moduleResolution %s and module %s",
    async (moduleResolution, module) => {
      const compilerOptions = {
        ...{ target: "es2022", module, moduleResolution, strict: true, noEmit: true, types: ["node"] },
        typeRoots: [join(repositoryRoot, "node_modules", "@types")],
        // Before 5.7, typed arrays have no type parameter.
        skipLibCheck: !WITHOUT_SKIP_LIB_CHECK.has(version) || moduleResolution === "node16",
      };
      const config = project.write(
        "tsconfig.json",
        JSON.stringify({ compilerOptions, files: ["consumer.ts"] }),
      );
      const { code, stdout } = await Program.node(path!, ["-p", config], project.folder).ended;
      expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
    },
    COMPILE_TIMEOUT_MS,
  );
});
