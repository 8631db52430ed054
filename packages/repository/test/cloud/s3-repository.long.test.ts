import { EventEmitter, on } from "node:events";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import { type RepositoryAgent, repository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { identityOnnx } from "../../../../test/support/onnx-models.js";
import { outcomeOf } from "../../../../test/support/outcome.js";
import { RepositoryInS3, S3_KEYS } from "../../../../test/support/repository-in-s3.js";
import {
  chainConfig,
  identityConfig,
  RepositoryOnDisk,
} from "../../../../test/support/repository-on-disk.js";
import { type ServedOptions, servedOptions } from "../../../../test/support/served-options.js";

/** Where copies go, so that tests can look at them. */
let copies = "";

beforeAll(async () => {
  copies = await mkdtemp(join(tmpdir(), "tritonjs-copies-"));
  Object.assign(process.env, S3_KEYS, { TRITON_AWS_MOUNT_DIRECTORY: copies });
});

afterAll(() => rm(copies, { recursive: true }));

beforeEach(() => {
  delete process.env.TRITON_CLOUD_CREDENTIAL_PATH;
});

const model = (name: string, more = "") => ({
  [`${name}/config.pbtxt`]: identityConfig(more),
  [`${name}/1/weights.bin`]: `weights of ${name}`,
});

const infer = async (triton: Triton, name: string) => {
  const { OUTPUT0 } = await triton.infer(name, { INPUT0: [[1, 2, 3]] });
  return [...OUTPUT0!.data];
};

const quiet = { error() {}, warn() {}, info() {}, debug() {} };

const explicit = (modelRepository: string | string[], ...loadModel: string[]): ServedOptions => ({
  modelRepository,
  modelControlMode: "explicit",
  loadModel,
  logger: quiet,
});

/** Paths of copied files, without the directories that hold each copy. */
async function copiedFiles(): Promise<string[]> {
  const entries = await readdir(copies, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return files.map((file) => file.slice(copies.length + 1).replace(/^[^/]+\/\d+\//, "")).sort();
}

describe("a repository in S3", () => {
  it("is served like a directory and leaves nothing behind", async () => {
    await using bucket = await RepositoryInS3.create({ ...model("a"), ...model("b"), "readme.txt": "none" });
    await using triton = new Triton({
      logger: quiet,
      extensions: [repository({ modelRepository: bucket.path })],
    });
    await triton.ready();
    expect(await infer(triton, "a")).toEqual([1, 2, 3]);
    expect(await serviceOf(triton).repositoryIndex(false)).toEqual([
      { name: "a", version: "1", state: "READY" },
      { name: "b", version: "1", state: "READY" },
    ]);
    expect(await copiedFiles()).toEqual([
      "a/1/weights.bin",
      "a/config.pbtxt",
      "b/1/weights.bin",
      "b/config.pbtxt",
    ]);
    await triton.close();
    expect(await readdir(copies)).toEqual([]);
  });

  it("provides model files that instances load, and labels", async () => {
    await using bucket = await RepositoryInS3.create({
      "onnx/1/model.onnx": identityOnnx("FLOAT", ["batch", 3]),
      "onnx/config.pbtxt": `max_batch_size: 4
        output [ { name: "y" data_type: TYPE_FP32 dims: [ 3 ] label_filename: "labels.txt" } ]`,
      "onnx/labels.txt": "one\ntwo\nthree",
    });
    await using triton = new Triton({
      logger: quiet,
      extensions: [repository({ modelRepository: bucket.path })],
    });
    await triton.ready();
    const outputs = await triton.infer("onnx", { x: [[1, 2, 3]] });
    expect(Object.values(outputs).map(({ data }) => [...data])).toEqual([[1, 2, 3]]);
  });

  it("works beside a directory, and an ensemble has members of both", async () => {
    await using bucket = await RepositoryInS3.create({ ...model("far"), ...model("unused") });
    await using disk = await RepositoryOnDisk.create({
      ...model("near"),
      "both/config.pbtxt": chainConfig("near", "far"),
      "both/1/": "",
    });
    await using triton = new Triton(servedOptions(explicit([bucket.path, disk.path], "both")));
    await triton.ready();
    const { OUT } = await triton.infer("both", { IN: [[4]] });
    expect([...OUT!.data]).toEqual([4]);
    expect(bucket.downloads).toEqual(["far/1/weights.bin", "far/config.pbtxt"]);
  });

  it("shows agents and backends a model's files under its name", async () => {
    await using bucket = await RepositoryInS3.create(
      model("m", 'model_repository_agents { agents [ { name: "look" } ] }'),
    );
    const seen: string[] = [];
    const look: RepositoryAgent = async (action, { location }) => {
      if (action === "LOAD") seen.push(await readFile(join(location, "1", "weights.bin"), "utf8"), location);
    };
    await using triton = new Triton({
      logger: quiet,
      extensions: [repository({ modelRepository: bucket.path, repositoryAgents: { look } })],
    });
    await triton.ready();
    expect(seen).toEqual(["weights of m", expect.stringMatching(/[\\/]m$/)]);
  });

  it("distinguishes equal model names by repository with namespaces", async () => {
    await using bucket = await RepositoryInS3.create(model("m"));
    await using disk = await RepositoryOnDisk.create(model("m"));
    const options = { modelRepository: [bucket.path, disk.path], logger: quiet, exitOnError: false };
    await using apart = new Triton(servedOptions({ modelNamespacing: true, ...options }));
    await apart.ready();
    expect(await serviceOf(apart).repositoryIndex(true)).toHaveLength(2);
    await using together = new Triton(servedOptions(options));
    await together.ready();
    expect(await serviceOf(together).repositoryIndex(false)).toEqual([
      { name: "m", state: "UNAVAILABLE", reason: "model appears in two or more repositories" },
    ]);
  });

  it("may have keys in all languages, folder objects, and several pages of objects", async () => {
    const many = Object.fromEntries(Array.from({ length: 45 }, (_, i) => [`many/1/part-${i}`, `${i}`]));
    await using bucket = await RepositoryInS3.create({
      "many/config.pbtxt": identityConfig(),
      ...many,
      "größe/config.pbtxt": identityConfig(),
      "größe/1/重み +%20.bin": "w",
      "hollow/": "",
      "hollow/1/": "",
      "hollow/config.pbtxt": identityConfig(),
      ".hidden/config.pbtxt": identityConfig(),
    });
    bucket.pageSize = 10;
    await using triton = new Triton({
      logger: quiet,
      extensions: [repository({ modelRepository: bucket.path })],
    });
    await triton.ready();
    const rows = await serviceOf(triton).repositoryIndex(true);
    expect(rows.map(({ name }) => name)).toEqual(["größe", "hollow", "many"]);
    const files = await copiedFiles();
    expect(files).toContain("größe/1/重み +%20.bin");
    expect(files.filter((file) => file.startsWith("many/1/"))).toHaveLength(45);
  });
});

describe("a model in S3", () => {
  it("is loaded, and reloaded only when an ETag changes", async () => {
    await using bucket = await RepositoryInS3.create(model("m"));
    await using triton = new Triton(servedOptions(explicit(bucket.path)));
    await triton.ready();
    expect(bucket.downloads).toEqual([]);

    await triton.loadModel("m");
    expect(bucket.downloads).toEqual(["m/1/weights.bin", "m/config.pbtxt"]);
    await triton.loadModel("m");
    expect(bucket.downloads).toHaveLength(2);

    bucket.requests.length = 0;
    await bucket.write({
      "m/config.pbtxt": identityConfig().replace("max_batch_size: 4", "max_batch_size: 9"),
    });
    await triton.loadModel("m");
    expect(serviceOf(triton).modelConfig("m", "").maxBatchSize).toBe(9);
    // Unchanged files are taken from the previous copy.
    expect(bucket.downloads).toEqual(["m/config.pbtxt"]);
    await expect.poll(copiedFiles).toEqual(["m/1/weights.bin", "m/config.pbtxt"]);
  });

  it("is unloaded, and comes back from its copy", async () => {
    await using bucket = await RepositoryInS3.create(model("m"));
    await using triton = new Triton(servedOptions(explicit(bucket.path, "m")));
    await triton.ready();
    await triton.unloadModel("m");
    expect(await outcomeOf(infer(triton, "m"))).toMatch(/no available versions/);
    bucket.requests.length = 0;
    await triton.loadModel("m");
    expect(await infer(triton, "m")).toEqual([1, 2, 3]);
    expect(bucket.downloads).toEqual([]);
  });

  it("is reported as not found when it is missing; a deleted one serves until it is unloaded", async () => {
    await using bucket = await RepositoryInS3.create(model("m"));
    await using triton = new Triton(servedOptions(explicit(bucket.path, "m")));
    await triton.ready();
    const load = (name: string) =>
      triton.loadModel(name).then(String, ({ cause }) => `${cause.code} ${cause.message}`);
    expect(await load("other")).toBe(
      "NOT_FOUND failed to poll model 'other': model not found in any model repository.",
    );
    for (const name of Object.keys(model("m"))) await bucket.delete(name);
    expect(await load("m")).toMatch(/^NOT_FOUND/);
    expect(await infer(triton, "m")).toEqual([1, 2, 3]);
    await triton.unloadModel("m");
    await expect.poll(copiedFiles).toEqual([]);
  });

  it("is followed by polling: it is added, changed, and removed", async () => {
    await using bucket = await RepositoryInS3.create(model("m"));
    const log = new EventEmitter();
    const take = (line: string) => void log.emit("line", line);
    await using triton = new Triton({
      logger: { ...quiet, info: take, error: take },
      extensions: [
        repository({ modelRepository: bucket.path, modelControlMode: "poll", repositoryPollSecs: 0.02 }),
      ],
    });
    await triton.ready();
    const logged = async (text: string) => {
      for await (const [line] of on(log, "line")) if (line.includes(text)) return;
    };
    // A poll may see the new version of m before it sees n.
    const changed = Promise.all(["m", "n"].map((name) => logged(`successfully loaded '${name}'`)));
    await bucket.write({ ...model("n"), "m/2/weights.bin": "newer" });
    await changed;
    const gone = logged("successfully unloaded 'n'");
    await bucket.delete("n/config.pbtxt");
    await bucket.delete("n/1/weights.bin");
    await gone;
    const rows = await serviceOf(triton).repositoryIndex(true);
    expect(rows).toEqual([{ name: "m", version: "2", state: "READY" }]);
    // A server that is gone takes nothing out of service.
    const failed = logged("failed to poll model repository");
    await bucket.stop();
    await failed;
    expect(await infer(triton, "m")).toEqual([1, 2, 3]);
    expect(await serviceOf(triton).repositoryIndex(true)).toEqual(rows);
  });

  it("is reached with the credentials of the longest matching path prefix", async () => {
    await using bucket = await RepositoryInS3.create(model("m"));
    const file = join(copies, "..", `tritonjs-credentials-${bucket.port}.json`);
    const right = { key_id: "S3RVER", secret_key: "S3RVER" };
    const wrong = { key_id: "NOBODY", secret_key: "nothing" };
    const { path, port } = bucket;
    process.env.TRITON_CLOUD_CREDENTIAL_PATH = file;
    const reason = async (names: object) => {
      await writeFile(file, JSON.stringify({ s3: names }));
      await using triton = new Triton({ logger: quiet, extensions: [repository({ modelRepository: path })] });
      return await outcomeOf(triton.ready());
    };
    try {
      expect(await reason({ "": wrong, [`s3://127.0.0.1:${port}/bucket`]: right })).toBe("done");
      expect(await reason({ "": right, [`s3://127.0.0.1:${port}/bucket`]: wrong })).toMatch(
        /InvalidAccessKeyId/,
      );
      expect(await reason({ "": { ...right, secret_key: "guess" } })).toMatch(/SignatureDoesNotMatch/);
      expect(await reason({ "s3://other": right })).toBe(
        `NOT_FOUND Cannot match credential for path  ${path}`,
      );
    } finally {
      await rm(file);
    }
  });
});
