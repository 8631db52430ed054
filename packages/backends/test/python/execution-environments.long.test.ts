import { chmod, readdir, readFile, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { Triton } from "@tritonjs/core";
import { repository } from "@tritonjs/repository";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Program } from "../../../../test/support/program.js";
import { hasPython, pythonProgram, withoutPython } from "../../../../test/support/python.js";
import { repositoryRoot } from "../../../../test/support/repository.js";
import { type RepositoryFiles, RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";
import { hasTar, type TarEntry, tarOf } from "../../../../test/support/tar.js";
import { FLOATS, modelClass, pythonFiles } from "./python-server.js";

const program = fileURLToPath(
  new URL("../../../core/test/behaviours/fixtures/serves-python.mjs", import.meta.url),
);
const quiet = { error() {}, warn() {}, info() {}, debug() {} };
const withoutTar = hasTar ? "" : " (skipped: there is no tar)";

/** A model that answers with values from its environment, and the directory of its Python. */
const inEnvironment = (path: string) => ({
  config: `${FLOATS}
parameters [ { key: "EXECUTION_ENV_PATH" value { string_value: "${path}" } },
  { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "yes" } } ]`,
  code: modelClass(`def execute(self, requests):
    pb_utils.Logger.log_info("runs in " + os.environ["HERE"])
    return [y([float(os.environ["IN_ENV"])]) for _ in requests]`),
});

const programOf = (value: number) =>
  `#!/bin/sh\nIN_ENV=${value} HERE="$(cd "$(dirname "$0")/.." && pwd -P)" exec ${pythonProgram} "$@"\n`;

/** The parts of a conda-pack archive that matter here. */
const packed = (value: number): TarEntry[] => [
  { name: "bin/activate", content: "export CONDA_PREFIX=here\n" },
  { name: "bin/python3.x", content: programOf(value) },
  { name: "bin/python3", link: "python3.x" },
];

class Environments implements AsyncDisposable {
  readonly places: string[] = [];
  readonly triton: Triton;

  constructor(readonly files: RepositoryOnDisk) {
    const info = (message: string) => {
      const [, place] = /runs in (.*)/.exec(message) ?? [];
      if (place !== undefined) this.places.push(place);
    };
    this.triton = new Triton({
      logger: { ...quiet, info },
      extensions: [
        repository({ modelRepository: files.path, modelControlMode: "explicit", exitOnError: false }),
      ],
    });
  }

  static async of(models: Readonly<Record<string, string>>, files: RepositoryFiles): Promise<Environments> {
    const made = Object.entries(models).map(([name, path]) => [name, inEnvironment(path)] as const);
    return new Environments(
      await RepositoryOnDisk.create({ ...pythonFiles(Object.fromEntries(made)), ...files }),
    );
  }

  async ask(model: string): Promise<number[]> {
    const { Y } = await this.triton.infer<string>(model, { X: [1] });
    return [...(Y as { data: Float32Array }).data];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.triton.close();
    await this.files[Symbol.asyncDispose]();
  }
}

const outcomeOf = (loading: Promise<unknown>) =>
  loading.then(
    () => "loaded",
    (error: Error) => error.message,
  );

describe.skipIf(!hasPython)(`EXECUTION_ENV_PATH${withoutPython}`, () => {
  it("names the directory whose Python runs the model", async () => {
    await using served = await Environments.of(
      { m: "$$TRITON_MODEL_DIRECTORY/env" },
      { "m/env/bin/python3": programOf(7) },
    );
    const environment = join(served.files.path, "m/env");
    await chmod(join(environment, "bin/python3"), 0o755);
    await served.triton.loadModel("m");
    expect(await served.ask("m")).toEqual([7]);
    expect(served.places).toEqual([environment]);
  });

  it("must exist, and must not leave the model's directory", async () => {
    await using served = await Environments.of(
      { away: "$$TRITON_MODEL_DIRECTORY/../env", none: "$$TRITON_MODEL_DIRECTORY/env.tar.gz" },
      {},
    );
    expect(await outcomeOf(served.triton.loadModel("away"))).toContain(
      "model 'away' has EXECUTION_ENV_PATH '$$TRITON_MODEL_DIRECTORY/../env': expected a path inside the model's directory",
    );
    expect(await outcomeOf(served.triton.loadModel("none"))).toContain(
      `'${join(served.files.path, "none/env.tar.gz")}' does not exist`,
    );
  });
});

describe.skipIf(!hasPython || !hasTar)(`a packed EXECUTION_ENV_PATH${withoutPython}${withoutTar}`, () => {
  // A temporary directory of its own, into which nothing else unpacks.
  let temporary: RepositoryOnDisk;
  const { TMPDIR } = process.env;
  beforeAll(async () => {
    temporary = await RepositoryOnDisk.create({});
    process.env.TMPDIR = temporary.path;
  });
  afterAll(async () => {
    if (TMPDIR === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = TMPDIR;
    await temporary[Symbol.asyncDispose]();
  });

  const shared = "$$TRITON_MODEL_DIRECTORY/env.tar.gz";

  it("is unpacked once for all models that name it, until it changes", async () => {
    await using files = await RepositoryOnDisk.create({ "env.tar.gz": gzipSync(tarOf(packed(3))) });
    const archive = join(files.path, "env.tar.gz");
    await using served = await Environments.of({ a: archive, b: archive }, {});
    await Promise.all([served.triton.loadModel("a"), served.triton.loadModel("b")]);
    expect([await served.ask("a"), await served.ask("b")]).toEqual([[3], [3]]);
    await served.triton.unloadModel("a");
    await served.triton.loadModel("a");
    expect([await served.ask("a"), await served.ask("b")]).toEqual([[3], [3]]);
    expect(new Set(served.places).size).toBe(1);

    await writeFile(archive, gzipSync(tarOf(packed(4))));
    await utimes(archive, 1_000_000, 1_000_000);
    await served.triton.unloadModel("a");
    await served.triton.loadModel("a");
    expect([await served.ask("a"), await served.ask("b")]).toEqual([[4], [3]]);
    expect(new Set(served.places).size).toBe(2);
    const places = [...new Set(served.places)];
    for (const place of places) {
      expect(await readFile(join(place, "bin/activate"), "utf8")).toContain("CONDA_PREFIX");
    }
    await served.triton.unloadModel("b");
    await served.triton.close();
    for (const place of places) await expect(readdir(place)).rejects.toThrow(/ENOENT/);
  });

  it("may be in the model's directory and uncompressed", async () => {
    await using served = await Environments.of(
      { m: "$$TRITON_MODEL_DIRECTORY/env.tar" },
      { "m/env.tar": tarOf(packed(5)) },
    );
    await served.triton.loadModel("m");
    expect(await served.ask("m")).toEqual([5]);
  });

  it.each<[what: string, archive: Buffer, reason: RegExp]>([
    ["is not an archive", Buffer.from("text ".repeat(1000)), /: cannot unpack it: tar: .*archive/],
    [
      "is cut short",
      gzipSync(tarOf(packed(1))).subarray(0, 150),
      /: cannot unpack it: unexpected end of file/,
    ],
    ["has no Python", gzipSync(tarOf([{ name: "bin/x" }])), /: expected 'bin\/python3' in the archive/],
  ])(
    "keeps the model from loading when it %s, and is named as the reason",
    async (_what, archive, reason) => {
      const before = await unpackedNow();
      await using served = await Environments.of({ m: shared }, { "m/env.tar.gz": archive });
      expect(await outcomeOf(served.triton.loadModel("m"))).toMatch(reason);
      expect(await unpackedNow()).toEqual(before);
    },
  );

  it.each<[what: string, entries: (outside: string) => TarEntry[]]>([
    ["in its parent", (outside) => [{ name: `../${basename(outside)}/taken`, content: "x" }]],
    [
      "behind a link",
      (outside) => [
        { name: "away", link: outside },
        { name: "away/taken", content: "x" },
      ],
    ],
  ])("is rejected with a file %s, and nothing is written there", async (_what, entries) => {
    await using outside = await RepositoryOnDisk.create({ "mine/file": "" });
    const archive = gzipSync(tarOf([...packed(1), ...entries(outside.path)]));
    await using served = await Environments.of({ m: shared }, { "m/env.tar.gz": archive });
    expect(await outcomeOf(served.triton.loadModel("m"))).toMatch(/: cannot unpack it: tar: .*taken/);
    expect(await readdir(outside.path)).toEqual(["mine"]);
  });

  it("is removed when its model fails to load", async () => {
    await using files = await RepositoryOnDisk.create({
      ...pythonFiles({ m: { ...inEnvironment(shared), code: "import what_there_is_not" } }),
      "m/env.tar.gz": gzipSync(tarOf(packed(1))),
    });
    await using served = new Environments(files);
    const before = await unpackedNow();
    expect(await outcomeOf(served.triton.loadModel("m"))).toContain("No module named 'what_there_is_not'");
    expect(await unpackedNow()).toEqual(before);
  });

  it("is removed when the process ends without closing", async () => {
    await using temporary = await RepositoryOnDisk.create({ "used/x": "" });
    const used = join(temporary.path, "used/where");
    const telling = programOf(1).replace("IN_ENV", `echo "$0" > ${used}\nIN_ENV`);
    await using files = await RepositoryOnDisk.create({
      ...pythonFiles({ m: inEnvironment(shared) }),
      "m/env.tar.gz": gzipSync(tarOf([{ name: "bin/python3", content: telling }])),
    });
    const env = { TMPDIR: temporary.path };
    const served = new Program(process.execPath, [program, files.path, "exit"], { cwd: repositoryRoot, env });
    expect(await served.ended).toMatchObject({ code: 0 });
    expect(await readFile(used, "utf8")).toMatch(/\/tritonjs-python-\w+\/bin\/python3\n/);
    expect(await readdir(temporary.path)).toEqual(["used"]);
  });

  it("reports that tar is needed when it is missing", async () => {
    await using served = await Environments.of({ m: shared }, { "m/env.tar.gz": tarOf(packed(1)) });
    const { PATH } = process.env;
    process.env.PATH = "/nowhere";
    try {
      expect(await outcomeOf(served.triton.loadModel("m"))).toMatch(
        /: cannot unpack it: cannot start the program 'tar' \(spawn tar ENOENT\)/,
      );
    } finally {
      process.env.PATH = PATH;
    }
    await served.triton.loadModel("m");
    expect(await served.ask("m")).toEqual([1]);
  });
});

async function unpackedNow(): Promise<string[]> {
  return (await readdir(tmpdir())).filter((name) => name.startsWith("tritonjs-python-"));
}
