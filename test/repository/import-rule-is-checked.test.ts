import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
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
      "packages/core/src/tensor/wrong.ts",
      'import { X } from "../scheduler/scheduler.js";',
      "tensor/ may not import scheduler/, which stands below it",
    ],
    [
      "a type that comes from below",
      "packages/core/src/errors/wrong.ts",
      'import type { X } from "../config/model-config.js";',
      "errors/ may not import config/",
    ],
    [
      "a dynamic import from below",
      "packages/core/src/tensor/wrong.ts",
      'const late = await import("../bind/bind-options.js");',
      "tensor/ may not import bind/",
    ],
    [
      "a re-export from below",
      "packages/core/src/clock/wrong.ts",
      'export * from "../model/registry.js";',
      "clock/ may not import model/",
    ],
    [
      "a folder that imports from the top",
      "packages/core/src/bind/wrong.ts",
      'import { Triton } from "../triton.js";',
      "a folder may not import ../triton.js from the top",
    ],
    [
      "a folder without a place",
      "packages/core/src/helpers/index.ts",
      "export {};",
      "packages/core/src/helpers has no place in the import order",
    ],
    [
      "a socket in core",
      "packages/core/src/service/wrong.ts",
      'import { createServer } from "node:http";',
      "core knows no socket, but imports node:http",
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

it("the import check accepts a file that follows the rule", async () => {
  const root = emptyRepository();
  const file = join(root, "packages", "core", "src", "model.ts");
  writeFileSync(file, 'import { x } from "./bind/x.js";\nimport nd from "ndarray";\n');
  expect(await Program.node(script, [root], repositoryRoot).ended).toMatchObject({ code: 0, stderr: "" });
});

/** A repository of three empty packages, removed at the end of the test. */
function emptyRepository(): string {
  const root = mkdtempSync(join(tmpdir(), "tritonjs-imports-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  for (const name of ["core", "http", "grpc", "cli"]) {
    mkdirSync(join(root, "packages", name, "src"), { recursive: true });
  }
  return root;
}
