import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { openTriton } from "../../../src/perf/open-target.js";
import { temporaryFolder } from "../support/analyze-command.js";

const TENSORS = `
  input { name: "INPUT0" data_type: TYPE_FP32 dims: 1 }
  output { name: "OUTPUT0" data_type: TYPE_FP32 dims: 1 }`;
const IDENTITY = `backend: "identity" max_batch_size: 2 ${TENSORS}`;
const CONFIGS = {
  step: IDENTITY,
  called: IDENTITY,
  other: IDENTITY,
  pair: `platform: "ensemble" max_batch_size: 2 ${TENSORS} ensemble_scheduling { step {
    model_name: "step" model_version: -1
    input_map { key: "INPUT0" value: "INPUT0" } output_map { key: "OUTPUT0" value: "OUTPUT0" } } }`,
};

async function writeModels(): Promise<string> {
  const repository = join(await temporaryFolder(), "repository");
  for (const [name, text] of Object.entries(CONFIGS)) {
    await mkdir(join(repository, name, "1"), { recursive: true });
    await writeFile(join(repository, name, "config.pbtxt"), text);
  }
  return repository;
}

it("loads the measured model, the steps of an ensemble and the called models, and no other", async () => {
  const triton = await openTriton({ repository: await writeModels(), calledModels: ["called"] }, "pair");
  onTestFinished(() => triton.close());
  const ready = Object.keys(CONFIGS).filter((name) => triton.service.isModelReady(name, ""));
  expect(ready).toEqual(["step", "called", "pair"]);
});

/** Warnings of the process, which are not written. */
function heardWarnings(): string[] {
  const heard: string[] = [];
  const spy = vi.spyOn(process, "emitWarning").mockImplementation((text) => void heard.push(String(text)));
  onTestFinished(() => spy.mockRestore());
  return heard;
}

it("leaves the message about a model that cannot be loaded to its caller", async () => {
  const heard = heardWarnings();
  await expect(openTriton({ repository: await writeModels() }, "absent")).rejects.toThrow("'absent'");
  expect(heard).toEqual([]);
});

it("warns of a called model that cannot be loaded, and measures without it", async () => {
  const heard = heardWarnings();
  const triton = await openTriton({ repository: await writeModels(), calledModels: ["absent"] }, "step");
  onTestFinished(() => triton.close());
  expect(triton.service.isModelReady("step", "")).toBe(true);
  expect(heard).toEqual([expect.stringContaining("'absent'")]);
});

it("names a model that the repository does not have", async () => {
  await expect(openTriton({ repository: await writeModels() }, "absent")).rejects.toThrow("'absent'");
});
