import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { LINES } from "../../scripts/node-lines.mjs";
import { PROGRAMS, page, ReadersProject } from "../docs/getting-started-page.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";
import { nodeOfLine } from "./foreign-tools.js";
import { PACKAGES, PackedPackages, succeed } from "./packed-packages.js";

const TIMEOUT_MS = 600_000;

const read = (path: string) => readFileSync(join(repositoryRoot, path), "utf8").replaceAll("\r\n", "\n");

/** What the page installs besides the packages, in the versions of the workspace. */
const { devDependencies } = JSON.parse(read("package.json")) as { devDependencies: Record<string, string> };
const others = Object.fromEntries(
  ["onnxruntime-node", "fastify", "express", "hono", "@hono/node-server"].map((name) => [
    name,
    devDependencies[name]!,
  ]),
);

/** The quick start of the README, and what it prints. */
const [, quickStart, promised] =
  /^Save this as `first\.mjs`.*?^```ts\n(.*?\/\/ (\[.*?\] \d+): one batch\n.*?)^```$/ms.exec(
    read("README.md"),
  )!;

/** The typed program of the page. Node runs it from 22.18 on. */
const [, typed] = /Save this as `typed\.mts`.*?^```ts\n(.*?)^```$/ms.exec(page)!;

const packed = new PackedPackages();
/** The packages in one folder, which no line of Node changes: no script of them runs when they are installed. */
let folder: string;
beforeAll(async () => {
  await packed.pack();
  folder = packed.project("tutorial", PACKAGES, others).folder;
  // As `npm init -y` of npm 11 writes it.
  const manifest = join(folder, "package.json");
  const fields = JSON.parse(readFileSync(manifest, "utf8"));
  writeFileSync(manifest, JSON.stringify({ ...fields, type: "commonjs" }));
  const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"];
  const options = { cwd: folder, shell: process.platform === "win32" };
  await succeed(new Program("npm", ["install", ...flags], options));
}, TIMEOUT_MS);
afterAll(() => packed.remove(), TIMEOUT_MS);

describe.each(LINES.map((line) => ({ line, ...nodeOfLine(line) })))(
  "the packed packages on Node $line $note",
  ({ line, path: node }) => {
    const PATH = `${dirname(node ?? "")}${delimiter}${process.env.PATH}`;
    let project: ReadersProject;
    beforeAll(() => {
      if (node === undefined) return;
      project = new ReadersProject(folder, node);
      rmSync(join(folder, "models"), { recursive: true, force: true });
    });

    const started: Program[] = [];
    afterEach(() => {
      for (const program of started.splice(0)) program.signal("SIGKILL");
    });
    function start(...args: string[]): Program {
      const program = new Program(node!, args, { cwd: folder, env: { PATH } });
      started.push(program);
      return program;
    }

    it.skipIf(node === undefined)("run the quick start of the README", async () => {
      project.write("quick-start.mjs", quickStart!);
      const { code, stdout, stderr } = await start("quick-start.mjs").ended;
      expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: `${promised}\n`, stderr: "" });
    });

    // What fails on a line between them fails on the oldest or on the newest one.
    const isEdge = line === LINES[0] || line === LINES.at(-1);
    it.skipIf(node === undefined).each(isEdge ? PROGRAMS.scripts : [])("run the tutorial's %s", (name) =>
      project.expectOutput(name),
    );

    it.skipIf(node === undefined).each(isEdge ? PROGRAMS.servers : [])(
      "run the tutorial's server %s with its clients",
      (name) => project.expectServer(name),
    );

    it.skipIf(node === undefined || line === "20")("run the tutorial's typed program", async () => {
      project.write("typed.mts", typed!);
      const { code, stdout } = await start("typed.mts").ended;
      expect({ code, stdout }).toEqual({ code: 0, stdout: "6\nINVALID_ARG\n" });
    });

    it.skipIf(node === undefined)("serve the repository of the tutorial's commands", async () => {
      const command = join("node_modules", "@tritonjs", "cli", "dist", "main.js");
      const { code, stderr } = await start(command, "init", "models").ended;
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      const ports = ["http", "grpc", "metrics"].flatMap((name) => [`--${name}-port`, "0"]);
      const server = start(command, "serve", "--model-repository", "models", ...ports);
      expect(await server.untilOutput("Started Metrics Service", "stderr")).toMatch(
        /\| classifier +\| 1 +\| READY/,
      );
      if (process.platform === "win32") return;
      server.signal("SIGTERM");
      expect((await server.ended).code).toBe(0);
    });
  },
);
