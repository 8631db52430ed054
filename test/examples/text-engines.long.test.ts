import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { exampleFolder, promisedOutput } from "../support/example-readme.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

/** Examples that install an engine by themselves, with the package that shows whether it is installed. */
const engines = [
  { name: "llama-cpp", engine: "node-llama-cpp" },
  { name: "transformers-js", engine: "@huggingface/transformers" },
];

describe.each(engines)("the example $name", ({ name, engine }) => {
  const folder = exampleFolder(name);
  const isInstalled = existsSync(join(folder, "node_modules", engine));
  const skipped = isInstalled ? "" : ` (skipped: ${engine} is not installed in examples/${name})`;

  it.skipIf(!isInstalled)(`prints what its README promises${skipped}`, async () => {
    const tsc = join(repositoryRoot, "node_modules", "typescript", "bin", "tsc");
    const compiled = await Program.node(tsc, ["-p", folder], repositoryRoot).ended;
    expect(compiled.stdout).toBe("");
    const program = Program.node(join(folder, "dist", "main.js"), [], folder);
    onTestFinished(() => program.signal("SIGKILL"));
    const { code, stdout, stderr } = await program.ended;
    expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(promisedOutput(name));
  });
});
