import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { classModels } from "../../src/serve/class-models.js";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tritonjs-test-"));
  await writeFile(join(folder, "model-settings.json"), '{"name": "iris", "implementation": "a.B"}');
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function settingsOf(name: string, given: string): Promise<unknown> {
  const { repository } = await classModels([given]);
  return JSON.parse(await readFile(join(repository!, name, "model-settings.json"), "utf8"));
}

describe("--model", () => {
  it.each([
    ["module.js#Scale", "Scale", "module.js#Scale"],
    ["other=module.mjs#Scale", "other", "module.mjs#Scale"],
    ["module.py:My_Model2", "My_Model2", "module.py#My_Model2"],
  ])("%s is a model of the class", async (given, name, implementation) => {
    expect(await settingsOf(name, given)).toEqual({
      name,
      implementation: join(process.cwd(), implementation),
    });
  });

  it("with a folder has the name of its settings, or the given one", async () => {
    expect(await settingsOf("iris", folder)).toEqual({ folder });
    expect(await settingsOf("flowers", `flowers=${folder}`)).toEqual({ folder });
  });

  it.each([
    [
      ["module.js"],
      "expected <module.js>#<Class>, <module.py>#<Class> or a folder with a model-settings.json, got 'module.js'",
    ],
    [["module.js#a.b"], "got 'module.js#a.b'"],
    [["nowhere"], "got 'nowhere'"],
    [
      ["a.js#Scale", "b.js#Scale"],
      "two models have the name 'Scale': give one of them another, <name>=b.js#Scale",
    ],
  ])("refuses %s", async (given, text) => {
    await expect(classModels(given)).rejects.toThrow(text);
  });

  it("makes no repository without any", async () => {
    expect((await classModels([])).repository).toBeUndefined();
  });
});
