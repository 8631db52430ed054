import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { analyze } from "@tritonjs/cli/tools";
import { expect, it, onTestFinished } from "vitest";
import { repositoryRoot } from "../support/repository.js";
import { blocks, documents } from "./markdown.js";

it("the module in the page about tritonjs analyze is tuned", async () => {
  const page = documents().find(({ path }) => path === "docs/performance-tools.md")!;
  const modules = blocks(page, "js");
  expect(modules).toHaveLength(1);
  // The folder is inside the repository, so that the package is found as in a project that installed it.
  const folder = join(repositoryRoot, "node_modules", ".cache", `doc-modules-${process.pid}`);
  mkdirSync(folder, { recursive: true });
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [program, results] = [join(folder, "program.mjs"), join(folder, "results")];
  writeFileSync(program, modules[0]!.code);

  const line = /^tritonjs analyze (.*--module program\.js .*)$/m.exec(page.text)![1]!;
  const args = line.replace("program.js", program).split(" ");
  const quick = ["--search", "brute", "--instances", "1", "--queue-delays", "0", "--concurrency-range", "8"];
  const measurement = ["-p", "40", "-r", "1", "--warmup-request-count", "1", "-e", results];
  let errors = "";
  const code = await analyze([...args, ...quick, ...measurement, "--num-configs-per-model", "9"], {
    write: () => {},
    writeError: (text) => {
      errors += text;
    },
    stopRequested: () => new Promise(() => {}),
  });
  expect({ code, errors: code === 0 ? "" : errors }).toEqual({ code: 0, errors: "" });
  const analysis = JSON.parse(readFileSync(join(results, "analysis.json"), "utf8"));
  const sizes = analysis.results.map((one: { parameters: { double: { maxBatchSize?: number } } }) =>
    String(one.parameters.double.maxBatchSize),
  );
  expect(sizes.toSorted()).toEqual(["1", "32", "8", "undefined"]);
});
