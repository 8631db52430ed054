import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { PACKAGES } from "../package/packed-packages.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

const script = join(repositoryRoot, "scripts", "check-imports.mjs");

it("the import check passes this repository", async () => {
  const { code, stdout, stderr } = await Program.node(script, [], repositoryRoot).ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toContain("imports point one way");
});

describe("the import check catches", () => {
  it.each<[what: string, path: string, text: string, fault: string]>([
    [
      "a folder that imports one below it",
      "packages/core/src/config/wrong.ts",
      'import { X } from "../scheduler/scheduler.js";',
      "config/ may not import scheduler/, which is below it",
    ],
    [
      "a type that comes from below",
      "packages/core/src/request/wrong.ts",
      'import type { X } from "../model/model-version.js";',
      "request/ may not import model/",
    ],
    [
      "a dynamic import from below",
      "packages/core/src/config/wrong.ts",
      'const late = await import("../bind/bind-options.js");',
      "config/ may not import bind/",
    ],
    [
      "an import of Node in a file that runs on the web",
      "packages/core/src/web.ts",
      'export { join } from "node:path";',
      "packages/core/src/web.ts: runs on the web, but imports node:path",
    ],
    [
      "a re-export from below",
      "packages/core/src/batch/wrong.ts",
      'export * from "../model/registry.js";',
      "batch/ may not import model/",
    ],
    [
      "a folder that imports from the top",
      "packages/core/src/bind/wrong.ts",
      'import { Triton } from "../index.js";',
      "a folder may not import ../index.js from the top",
    ],
    [
      "a folder without a place",
      "packages/core/src/helpers/index.ts",
      "export {};",
      "packages/core/src/helpers has no place in the import order",
    ],
    [
      "a folder of HTTP that imports one below it",
      "packages/http/src/json/wrong.ts",
      'import type { Route } from "../routes/route.js";',
      "json/ may not import routes/, which is below it",
    ],
    [
      "a folder of gRPC that imports one below it",
      "packages/grpc/src/transport/wrong.ts",
      'import { protocolMethods } from "../methods/methods.js";',
      "transport/ may not import methods/, which is below it",
    ],
    [
      "a folder of the command line that imports one below it",
      "packages/cli/src/options/wrong.ts",
      'import { serve } from "../serve/serve.js";',
      "options/ may not import serve/, which is below it",
    ],
    [
      "a folder that imports an assembly file of its package",
      "packages/grpc/src/methods/wrong.ts",
      'import { grpc } from "../server.js";',
      "a folder may not import ../server.js from the top",
    ],
    [
      "a folder of HTTP without a place",
      "packages/http/src/helpers/index.ts",
      "export {};",
      "packages/http/src/helpers has no place in the import order",
    ],
    [
      "a file that imports itself",
      "packages/cli/src/serve/wrong.ts",
      'import type { X } from "./wrong.js";',
      "files import each other in a cycle: packages/cli/src/serve/wrong.ts -> packages/cli/src/serve/wrong.ts",
    ],
    [
      "a socket in core",
      "packages/core/src/model/wrong.ts",
      'import { createServer } from "node:http";',
      "core opens no sockets, but imports node:http",
    ],
    [
      "a transport in core",
      "packages/core/src/triton-wrong.ts",
      'import { http } from "@tritonjs/http";',
      "packages/core may not import @tritonjs/http",
    ],
    [
      "one transport in the other",
      "packages/http/src/wrong.ts",
      'import { grpc } from "@tritonjs/grpc";',
      "packages/http may not import @tritonjs/grpc",
    ],
    [
      "a path into another package",
      "packages/grpc/src/wrong.ts",
      'import { Tensor } from "../../core/src/tensor/tensor.js";',
      "leaves the package",
    ],
    [
      "a dependency that a package does not have",
      "packages/http/src/wrong.ts",
      'import express from "express";',
      "packages/http may not import express",
    ],
    [
      "a file of core that names an extension",
      "packages/core/src/wrong.ts",
      "export const startsRollout = true;",
      "packages/core/src/wrong.ts names the extension 'rollouts': Rollout",
    ],
    [
      "a frontend that names an extension",
      "packages/grpc/src/wrong.ts",
      "export interface X { targetLatencyMs: number }",
      "packages/grpc/src/wrong.ts names the extension 'deadlines': targetLatency",
    ],
    [
      "a core with more lines than its budget",
      "packages/core/src/long.ts",
      "export {};\n".repeat(30_001),
      "expected at most 30000 lines, got 30002",
    ],
  ])("%s", async (_what, path, text, fault) => {
    const root = emptyRepository();
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), `${text}\n`);
    const { code, stderr } = await Program.node(script, [root], repositoryRoot).ended;
    expect(code).toBe(1);
    expect(stderr).toContain(fault);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  });
});

it("the import check catches a cycle of imports, type imports included", async () => {
  const root = emptyRepository();
  const folder = join(root, "packages", "grpc", "src", "transport");
  mkdirSync(folder);
  writeFileSync(join(folder, "a.ts"), 'import type { B } from "./b.js";\n');
  writeFileSync(join(folder, "b.ts"), 'export type { C } from "./c.js";\n');
  writeFileSync(join(folder, "c.ts"), 'export const a = () => import("./a.js");\n');
  const { code, stderr } = await Program.node(script, [root], repositoryRoot).ended;
  const [a, b, c] = ["a", "b", "c"].map((name) => `packages/grpc/src/transport/${name}.ts`);
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: `files import each other in a cycle: ${a} -> ${b} -> ${c} -> ${a}\n`,
  });
});

it("the import check accepts the import of a top-level file that has a place in the order", async () => {
  const root = emptyRepository();
  const folder = join(root, "packages", "http", "src", "json");
  mkdirSync(folder);
  writeFileSync(join(folder, "right.ts"), 'import { MAX_DATA_DEPTH } from "../limits.js";\n');
  expect(await Program.node(script, [root], repositoryRoot).ended).toMatchObject({ code: 0, stderr: "" });
});

it("the import check accepts an extension in its home, in the table of the command and in comments", async () => {
  const root = emptyRepository();
  const names = "export const rollout = 1;\n";
  for (const [path, text] of [
    ["operations/src/rollout/index.ts", names],
    ["cli/src/serve/extensions.ts", names],
    ["core/src/index.ts", "/** Rollouts stand on the route seam. */\nexport {};\n"],
  ] as const) {
    mkdirSync(dirname(join(root, "packages", path)), { recursive: true });
    writeFileSync(join(root, "packages", path), text);
  }
  expect(await Program.node(script, [root], repositoryRoot).ended).toMatchObject({ code: 0, stderr: "" });
});

it("the import check accepts a file that follows the rule", async () => {
  const root = emptyRepository();
  const file = join(root, "packages", "core", "src", "model.ts");
  writeFileSync(file, 'import { x } from "./bind/x.js";\nimport nd from "ndarray";\n');
  expect(await Program.node(script, [root], repositoryRoot).ended).toMatchObject({ code: 0, stderr: "" });
});

/** A repository of empty packages, removed at the end of the test. */
function emptyRepository(): string {
  const root = mkdtempSync(join(tmpdir(), "tritonjs-imports-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  for (const name of PACKAGES) {
    mkdirSync(join(root, "packages", name, "src"), { recursive: true });
  }
  return root;
}
