import { mkdtemp, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { VERSION } from "@tritonjs/core/internal";
import { expect, it } from "vitest";
import { Program } from "../../../../test/support/program.js";
import { run } from "../../src/run.js";
import { TestTerminal } from "../support/test-terminal.js";

const repository = fileURLToPath(new URL("../../../..", import.meta.url));

it.each(["app", "service"])(
  "a program of the template %s compiles and passes its tests",
  async (template) => {
    // Inside the repository, where its packages are found without an installation.
    const folder = await mkdtemp(join(repository, "node_modules", ".cache", "template-"));
    try {
      const terminal = new TestTerminal();
      expect(await run(["init", folder, "--template", template], terminal)).toBe(0);
      expect(terminal.output).toContain(`Start it: cd ${folder} && npm install && npm start`);
      const { dependencies } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
      expect(dependencies["@tritonjs/core"]).toBe(`^${VERSION}`);
      expect(await readFile(join(folder, ".gitignore"), "utf8")).toContain("node_modules/");
      const tsc = join(repository, "node_modules", "typescript", "bin", "tsc");
      const compiled = await Program.node(tsc, [], folder).ended;
      expect(compiled).toMatchObject({ code: 0, stdout: "" });
      const tests = template === "app" ? "dist/test/models.test.js" : "dist/test/service.test.js";
      const { code, stdout } = await new Program(process.execPath, ["--test", tests], { cwd: folder }).ended;
      expect(code, stdout).toBe(0);
      expect(stdout).toMatch(/# fail 0/);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
);
