import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { copyFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readPrototxt } from "@tritonjs/core/config";
import { afterAll, expect, it } from "vitest";
import { addToRepository } from "../../../src/optimize/variant-machine.js";

const folder = mkdtempSync(join(tmpdir(), "variant-machine-"));
afterAll(() => rmSync(folder, { recursive: true }));

it("a form is in the repository with its file and the parameters of its sessions", async () => {
  const file = join(folder, "clean.onnx");
  writeFileSync(file, "a model");
  const report = {
    name: "clean-low-memory",
    text: "",
    layers: [],
    kept: [],
    bytes: 7,
    worstLayers: [],
    runs: [],
  };
  await addToRepository(folder, { report, file, parameters: { enable_mem_arena: "0" } }, 8, copyFile);
  const place = join(folder, "clean-low-memory");
  expect(readFileSync(join(place, "1", "model.onnx"), "utf8")).toBe("a model");
  expect(readPrototxt(readFileSync(join(place, "config.pbtxt"), "utf8"))).toMatchObject({
    name: "clean-low-memory",
    backend: "onnxruntime",
    maxBatchSize: 8,
    parameters: { enable_mem_arena: { stringValue: "0" } },
  });
});
