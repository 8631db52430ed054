import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { sampleModel } from "../../src/init/sample-model.js";
import { run } from "../../src/run.js";
import { TemporaryFolder } from "../support/temporary-folder.js";
import { TestTerminal } from "../support/test-terminal.js";

const tsc = createRequire(import.meta.url)
  .resolve("typescript/package.json")
  .replace("package.json", "bin/tsc");
/** The folder lies inside the repository, where the compiler finds the packages. */
const cache = fileURLToPath(new URL("../../../../node_modules/.cache/", import.meta.url));

const program = `import { Triton } from "@tritonjs/core";
const triton = new Triton({ modelRepository: "models" });
const { probabilities } = await triton.infer("classifier", { features: new Float32Array(4) });
const data: Float32Array = probabilities.data;
// @ts-expect-error: an input that the model does not have
await triton.infer("classifier", { picture: new Float32Array(4) });
export { data };
`;

it("the types command types triton.infer() for the models of a repository", async () => {
  await using folder = await TemporaryFolder.create({ "classifier/1/model.onnx": sampleModel() });
  await mkdir(cache, { recursive: true });
  const project = await mkdtemp(join(cache, "types-"));
  try {
    const out = join(project, "models.d.ts");
    expect(await run(["types", folder.path, "--out", out], new TestTerminal())).toBe(0);
    await writeFile(join(project, "program.mts"), program);
    const options =
      "--noEmit --strict --target ES2022 --module NodeNext --skipLibCheck --types node --ignoreConfig";
    const files = [out, join(project, "program.mts")];
    const { stdout } = await promisify(execFile)(process.execPath, [
      tsc,
      ...options.split(" "),
      ...files,
    ]).catch((error: { stdout: string }) => error);
    expect(stdout).toBe("");
  } finally {
    await rm(project, { recursive: true });
  }
});

it("the types command writes types of the models that it can read and reports the others", async () => {
  await using folder = await TemporaryFolder.create({
    "classifier/1/model.onnx": sampleModel(),
    "broken/config.pbtxt": "no config",
  });
  const terminal = new TestTerminal();
  expect(await run(["types", folder.path], terminal)).toBe(1);
  expect(terminal.output).toContain('"classifier": {');
  expect(terminal.errors).toMatch(/broken\/config\.pbtxt:1:\d+: error: /);
  const out = join(folder.path, "models.d.ts");
  await run(["types", folder.path, "--out", out], terminal);
  expect(terminal.output).toBe(await readFile(out, "utf8"));
});
