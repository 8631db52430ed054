import { readFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LINES } from "../../scripts/node-lines.mjs";
import { Program } from "../support/program.js";
import { nodeOfLine, npmTool, otherRuntime } from "./foreign-tools.js";
import { PACKAGES, PackedPackages, type Project, pnpmVersion, succeed } from "./packed-packages.js";
import { servingProgram } from "./programs.js";

const INSTALL_TIMEOUT_MS = 300_000;

const yarn = npmTool("yarn 1", "yarn-1", "yarn@1.22.22", join("yarn", "bin", "yarn.js"));
const bun = otherRuntime("bun");

const packed = new PackedPackages();
beforeAll(() => packed.pack(), INSTALL_TIMEOUT_MS);
afterAll(() => packed.remove(), INSTALL_TIMEOUT_MS);

const requiringProgram = `
const { Triton } = require("@tritonjs/core");
const { TritonError } = require("@tritonjs/protocol");
console.log(typeof Triton, typeof TritonError, typeof require("@tritonjs/client").Tensor);
`;

/** Runs the programs of a newcomer in an installed project. */
async function expectThatItWorks(project: Project, node: string): Promise<void> {
  const run = (file: string, text: string) =>
    new Program(node, [project.write(file, text)], { cwd: project.folder }).ended;
  const served = await run("serve.mjs", servingProgram);
  expect(served).toMatchObject({ code: 0, stderr: "" });
  expect(served.stdout).toBe("in process: 6\nfrontends: grpc http metrics\nover HTTP: 8\nclosed\n");
  const required = await run("require.cjs", requiringProgram);
  expect(required).toMatchObject({ code: 0, stdout: "function function function\n", stderr: "" });
}

/** Runs a command that finds the given Node first, as its children do. */
function withNode(node: string, command: string, args: readonly string[], cwd: string): Program {
  const PATH = `${dirname(node)}${delimiter}${process.env.PATH}`;
  return new Program(command, args, { cwd, env: { PATH }, shell: process.platform === "win32" });
}

/* What fails on a line between them fails on the oldest or on the newest one. */
const oldest = nodeOfLine(LINES[0]!);
const newest = nodeOfLine(LINES.at(-1)!);
const isMissing = oldest.path === undefined || newest.path === undefined;
const note = oldest.note || newest.note;

/* The packages that npm installs run with the tutorial's programs on each line: `tutorial.long.test.ts`. */
it.skipIf(isMissing).each([
  { line: LINES[0]!, node: oldest.path },
  { line: LINES.at(-1)!, node: newest.path },
])(
  `npm on Node $line chooses one version of protobufjs, and nothing that refuses this Node${note}`,
  async ({ line, node }) => {
    const project = packed.project(`npm-${line}`, PACKAGES);
    const flags = ["--package-lock-only", "--engine-strict", "--no-audit", "--no-fund", "--prefer-offline"];
    await succeed(withNode(node!, "npm", ["install", ...flags], project.folder));
    const lock = JSON.parse(readFileSync(join(project.folder, "package-lock.json"), "utf8"));
    const chosen = Object.keys(lock.packages);
    expect(chosen).toContain("node_modules/@tritonjs/cli");
    expect(chosen.filter((path) => path.endsWith("/protobufjs"))).toEqual(["node_modules/protobufjs"]);
  },
  INSTALL_TIMEOUT_MS,
);

describe(`on the oldest and newest Node${note}`, () => {
  const works = async (project: Project) => {
    for (const { path } of [oldest, newest]) await expectThatItWorks(project, path!);
  };

  it.skipIf(isMissing || yarn.path === undefined)(
    `yarn 1 installs the packages, checks what each wants of Node, and they work${yarn.note}`,
    async () => {
      const project = packed.project("yarn", PACKAGES);
      // Yarn's own cache may have a package of the same version from an earlier run.
      const cache = ["--cache-folder", join(dirname(project.folder), "yarn-cache")];
      const flags = ["--ignore-scripts", "--non-interactive", "--no-progress", "--prefer-offline", ...cache];
      await succeed(withNode(oldest.path!, oldest.path!, [yarn.path!, "install", ...flags], project.folder));
      await works(project);
      const copies = project.installed().files.filter((file) => file.endsWith("protobufjs/package.json"));
      expect(copies).toEqual(["protobufjs/package.json"]);
    },
    INSTALL_TIMEOUT_MS,
  );

  it.skipIf(isMissing)(
    "pnpm installs the packages, and they work",
    async () => {
      const project = packed.project("pnpm", PACKAGES);
      const args = ["--yes", pnpmVersion(), "install", "--ignore-scripts", "--prefer-offline"];
      await succeed(withNode(newest.path!, "npx", args, project.folder));
      await works(project);
    },
    INSTALL_TIMEOUT_MS,
  );

  it.skipIf(isMissing || bun.path === undefined)(
    `bun installs the packages, and they work${bun.note}`,
    async () => {
      const project = packed.project("bun", PACKAGES);
      await succeed(withNode(newest.path!, bun.path!, ["install", "--ignore-scripts"], project.folder));
      await works(project);
    },
    INSTALL_TIMEOUT_MS,
  );
});
