import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { type Logger, Triton } from "@tritonjs/core";
import { inspectRepository } from "@tritonjs/core/config";
import { expect, it } from "vitest";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";

const quiet: Logger = { error() {}, warn() {}, info() {}, debug() {} };

/** A backend whose models are files with a number. */
const scaling = `
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "./read/parse.mjs";

export default class Scale {
  static autoCompleteConfig(config) {
    config.addInput({ name: "x", dataType: "FP32", dims: [1] });
    config.addOutput({ name: "y", dataType: "FP32", dims: [1] });
    config.setMaxBatchSize(8);
  }
  async initialize({ modelDirectory }) {
    this.factor = parse(await readFile(join(modelDirectory, "factor.txt"), "utf8"));
  }
  execute(requests) {
    return requests.map(({ inputs: { x } }) => ({ y: x.data.map((value) => value * this.factor) }));
  }
}`;

it("models of a JavaScript backend share its module, and have the directories of their versions", async () => {
  await using backends = await RepositoryOnDisk.create({
    "scale/backend.js": scaling,
    "scale/package.json": '{ "type": "module" }',
    "scale/read/parse.mjs": "export const parse = Number;",
  });
  await using models = await RepositoryOnDisk.create({
    "thrice/config.pbtxt": 'backend: "scale" version_policy { all {} }',
    "thrice/1/factor.txt": "3",
    "thrice/2/factor.txt": "30",
  });
  const options = { backendDirectory: backends.path };
  await using triton = new Triton({ modelRepository: models.path, logger: quiet, ...options });
  await triton.ready();
  const ask = async (modelVersion: number) => {
    const { y } = await triton.infer("thrice", { x: [[1], [2]] }, { modelVersion });
    return Array.from(y!.data as Float32Array);
  };
  expect(await ask(1)).toEqual([3, 6]);
  expect(await ask(2)).toEqual([30, 60]);
  const inspections = await inspectRepository([models.path], options);
  expect(inspections.map(({ name, config, findings }) => [name, config?.runtime, findings])).toEqual([
    ["thrice", "backend.js", []],
  ]);
});

it("a broken JavaScript backend is the reason of its models, and the others are served", async () => {
  await using outside = await RepositoryOnDisk.create({ "backend.mjs": scaling });
  await using backends = await RepositoryOnDisk.create({
    "throws/backend.mjs": 'throw new Error("no licence");',
    "empty/backend.mjs": "export const nothing = 1;",
    "syntax/backend.mjs": "export default class {",
    "absent/backend.mjs": 'import "package-that-nobody-has";',
    "fine/backend.mjs": scaling.replace(
      "./read/parse.mjs",
      "data:text/javascript,export const parse = Number;",
    ),
    "linked/README": "",
  });
  await symlink(join(outside.path, "backend.mjs"), join(backends.path, "linked/backend.mjs"));
  const names = ["throws", "empty", "syntax", "absent", "fine", "linked"];
  const files = names.flatMap((name) => [
    [`${name}/config.pbtxt`, `backend: "${name}"`],
    [`${name}/1/factor.txt`, "3"],
  ]);
  await using models = await RepositoryOnDisk.create(Object.fromEntries(files));
  await using triton = new Triton({
    modelRepository: models.path,
    backendDirectory: backends.path,
    exitOnError: false,
    logger: quiet,
  });
  await triton.ready();
  const index = await triton.service.repositoryIndex(false);
  const reasonOf = (name: string) => index.find((row) => row.name === name)?.reason;
  expect(reasonOf("throws")).toMatch(/no licence/);
  expect(reasonOf("empty")).toMatch(/backend\.mjs.*export|export.*backend\.mjs/s);
  expect(reasonOf("syntax")).toMatch(/backend\.mjs/);
  expect(reasonOf("absent")).toMatch(/package-that-nobody-has/);
  expect(reasonOf("linked")).toMatch(/linked/);
  const { y } = await triton.infer("fine", { x: [[2]] });
  expect(Array.from(y!.data as Float32Array)).toEqual([6]);
});
