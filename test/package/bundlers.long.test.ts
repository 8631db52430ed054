import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Program } from "../support/program.js";
import { ALL_WORKS, bundledApp, optionalParts, WORKERS_FAIL } from "./bundled-app.js";
import { npmTool } from "./foreign-tools.js";
import { PackedPackages, type Project } from "./packed-packages.js";

const INSTALL_TIMEOUT_MS = 300_000;

const esbuild = npmTool(
  "esbuild",
  "esbuild-0.28",
  "esbuild@0.28.2",
  join(
    "@esbuild",
    `${process.platform}-${process.arch}`,
    process.platform === "win32" ? "esbuild.exe" : "bin/esbuild",
  ),
);
const webpack = npmTool("webpack", "webpack-5", "webpack@5.112.2", join("webpack", "lib", "index.js"));

const packed = new PackedPackages();
let project: Project;
beforeAll(async () => {
  await packed.pack();
  // No optional package is installed.
  project = await packed.install("bundled", ["protocol", "core", "server", "operations", "backends", "http"]);
  project.write("app.mjs", bundledApp);
  project.write("optional-parts.mjs", optionalParts);
}, INSTALL_TIMEOUT_MS);
afterAll(() => packed.remove(), INSTALL_TIMEOUT_MS);

/** Runs a bundle and gives the lines that it printed. */
async function linesOf(bundle: string): Promise<string[]> {
  const { code, stdout, stderr } = await Program.node(bundle, [], dirname(bundle)).ended;
  // A model that cannot be loaded is a warning of the process. Nothing else may be written.
  const other = stderr.split("\n").filter((line) => !/^$|failed to load|--trace-warnings/.test(line));
  expect({ code, other }).toEqual({ code: 0, other: [] });
  return stdout.trimEnd().split("\n");
}

describe.skipIf(esbuild.path === undefined)(`esbuild${esbuild.note}`, () => {
  /** Bundles the program; fails for any error or warning. */
  async function bundle(name: string, ...flags: string[]): Promise<string> {
    const target = join(project.folder, name);
    const args = ["app.mjs", "--bundle", "--minify", "--platform=node", "--log-level=warning", ...flags];
    const program = new Program(esbuild.path!, [...args, `--outfile=${target}`], { cwd: project.folder });
    expect(await program.ended).toMatchObject({ code: 0, stdout: "", stderr: "" });
    return target;
  }

  it.each(["esm", "cjs"])(
    "bundles a program to %s whose packages are external, and all of it works",
    async (format) => {
      const name = `external.${format === "esm" ? "mjs" : "cjs"}`;
      expect(await linesOf(await bundle(name, `--format=${format}`, "--external:@tritonjs/*"))).toEqual(
        ALL_WORKS,
      );
    },
  );

  it.each(["esm", "cjs"])(
    "bundles the packages to %s; a model in a worker says what to make external",
    async (format) => {
      const name = `bundled.${format === "esm" ? "mjs" : "cjs"}`;
      expect(await linesOf(await bundle(name, `--format=${format}`))).toEqual(WORKERS_FAIL);
    },
  );
});

describe.skipIf(webpack.path === undefined)(`webpack${webpack.note}`, () => {
  it("bundles a program with external packages without a warning, and all of it works", async () => {
    const script = project.write(
      "webpack.mjs",
      `import webpack from ${JSON.stringify(pathToFileURL(webpack.path ?? "/").href)};
      webpack({
        mode: "production", target: "node20", entry: "./app.mjs", context: import.meta.dirname,
        externals: [/^@tritonjs\\//], externalsType: "module", experiments: { outputModule: true },
        output: { path: import.meta.dirname + "/webpack", filename: "app.mjs", module: true, chunkFormat: "module" },
      }, (error, stats) => {
        const { errors = [], warnings = [] } = stats?.toJson({ all: false, errors: true, warnings: true }) ?? {};
        for (const { message } of [...errors, ...warnings, ...(error ? [error] : [])]) console.log(message);
      });`,
    );
    mkdirSync(join(project.folder, "webpack"));
    expect(await Program.node(script, [], project.folder).ended).toMatchObject({
      code: 0,
      stdout: "",
      stderr: "",
    });
    expect(await linesOf(join(project.folder, "webpack", "app.mjs"))).toEqual(ALL_WORKS);
  });
});

describe("rolldown", () => {
  it.each([
    ["external", [/^@tritonjs\//], ALL_WORKS],
    ["part of the bundle", [], WORKERS_FAIL],
  ])("bundles a program whose packages are %s without a warning", async (_, external, expected) => {
    const warnings: string[] = [];
    const build = await rolldown({
      input: join(project.folder, "app.mjs"),
      platform: "node",
      external,
      onLog: (level, { message }) => {
        if (level === "warn") warnings.push(message);
      },
    });
    const folder = join(project.folder, `rolldown-${expected.length}-${external.length}`);
    await build.write({ dir: folder, entryFileNames: "app.mjs" });
    await build.close();
    expect(warnings).toEqual([]);
    expect(await linesOf(join(folder, "app.mjs"))).toEqual(expected);
  });
});
