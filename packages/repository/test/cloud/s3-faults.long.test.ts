import { mkdtemp, readdir, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import { repository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { afterAll, beforeAll, expect, it } from "vitest";
import { outcomeOf } from "../../../../test/support/outcome.js";
import { type Intercept, RepositoryInS3, S3_KEYS } from "../../../../test/support/repository-in-s3.js";
import { identityConfig, RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";
import { type ServedOptions, servedOptions } from "../../../../test/support/served-options.js";

let copies = "";

beforeAll(async () => {
  copies = await mkdtemp(join(tmpdir(), "tritonjs-copies-"));
  Object.assign(process.env, S3_KEYS, { TRITON_AWS_MOUNT_DIRECTORY: copies });
});

afterAll(() => rm(copies, { recursive: true }));

const model = (name: string) => ({
  [`${name}/config.pbtxt`]: identityConfig(),
  [`${name}/1/weights.bin`]: `weights of ${name}`,
});

const quiet = { error() {}, warn() {}, info() {}, debug() {} };

const explicit = (modelRepository: string | string[], ...loadModel: string[]): ServedOptions => ({
  modelRepository,
  modelControlMode: "explicit",
  loadModel,
  logger: quiet,
});

const start = async (modelRepository: string) => {
  await using triton = new Triton({ logger: quiet, extensions: [repository({ modelRepository })] });
  return await outcomeOf(triton.ready());
};

/** Outcome of loading a model, with the reason that stays on the server. */
const load = (triton: Triton, name: string) =>
  triton.loadModel(name).then(
    () => "done",
    ({ message, cause }) => `${cause?.code ?? ""} ${cause?.message ?? message}`,
  );

/** Runs `act` before the first answer to a path with this end. */
const before =
  (end: string, act: () => Promise<void>): Intercept =>
  async (path) => {
    if (!path.endsWith(end) || acted.has(act)) return false;
    acted.add(act);
    await act();
    return false;
  };
const acted = new WeakSet<() => Promise<void>>();

/** Breaks off answers to a path with this end in the middle. */
const breakOff =
  (end: string, times: number): Intercept =>
  (path, response) => {
    if (!path.endsWith(end) || times-- <= 0) return false;
    response.writeHead(200, { "content-length": 1000 });
    response.write("the first bytes", () => response.destroy());
    return true;
  };

it("a missing bucket or folder and a refusing server end the start with the reason", async () => {
  await using bucket = await RepositoryInS3.create(model("m"));
  const host = `s3://127.0.0.1:${bucket.port}`;
  expect(await start(`${host}/no-bucket/models`)).toMatch(
    /^INTERNAL Could not list contents of directory at s3:\/\/127.0.0.1:\d+\/no-bucket\/models due to exception: NoSuchBucket, error message: /,
  );
  expect(await start(`${host}/bucket/nothing`)).toBe(
    `INVALID_ARG repository path ${host}/bucket/nothing is not a valid directory`,
  );
  await bucket.stop();
  expect(await start(bucket.path)).toMatch(/^INTERNAL Could not list .* ECONNREFUSED/);
  expect(await readdir(copies)).toEqual([]);
});

it("a missing directory for copies keeps models from loading, and the error names its option", async () => {
  await using bucket = await RepositoryInS3.create(model("m"));
  const before = process.env.TRITON_AWS_MOUNT_DIRECTORY;
  process.env.TRITON_AWS_MOUNT_DIRECTORY = join(copies, "nowhere");
  try {
    expect(await start(bucket.path)).toMatch(
      /nowhere: ENOENT.*; set TRITON_AWS_MOUNT_DIRECTORY to use another place$/,
    );
  } finally {
    process.env.TRITON_AWS_MOUNT_DIRECTORY = before;
  }
});

it("a path without a bucket is rejected at once", () => {
  expect(() => new Triton({ extensions: [repository({ modelRepository: "s3://" })] })).toThrow(
    "No bucket name found in path: s3://",
  );
});

it("a server that never answers does not delay closing", async () => {
  const asked = withResolvers();
  const silent = createServer(() => asked.resolve());
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const { port } = silent.address() as AddressInfo;
  const triton = new Triton({
    logger: quiet,
    extensions: [repository({ modelRepository: `s3://127.0.0.1:${port}/bucket/models` })],
  });
  const started = outcomeOf(triton.ready());
  await asked.promise;
  await triton.close();
  expect(await started).toMatch(/^UNAVAILABLE .*the server is closing/);
  silent.closeAllConnections();
  await new Promise((resolve) => silent.close(resolve));
});

it("a broken download is retried", async () => {
  await using bucket = await RepositoryInS3.create(model("m"));
  bucket.intercept = breakOff("weights.bin", 2);
  await using triton = new Triton(servedOptions(explicit(bucket.path, "m")));
  await triton.ready();
  expect(bucket.downloads.filter((path) => path === "m/1/weights.bin")).toHaveLength(3);
});

it("a download that always breaks keeps its model from loading and leaves no file", async () => {
  await using bucket = await RepositoryInS3.create({ ...model("m"), ...model("n") });
  bucket.intercept = breakOff("m/1/weights.bin", Number.POSITIVE_INFINITY);
  await using triton = new Triton({
    logger: quiet,
    extensions: [repository({ modelRepository: bucket.path, exitOnError: false })],
  });
  await triton.ready();
  const [m, n] = await serviceOf(triton).repositoryIndex(false);
  expect(m).toMatchObject({ name: "m", state: "UNAVAILABLE" });
  expect(m!.reason).toMatch(
    /Failed to get object at s3:.*\/bucket\/models\/m\/1\/weights.bin due to exception/,
  );
  expect(n).toEqual({ name: "n", version: "1", state: "READY" });
  const [folder] = await readdir(copies);
  const names = await readdir(join(copies, folder!), { recursive: true });
  expect(names.filter((name) => name.includes("weights"))).toHaveLength(1);
});

it("a server that stops during a copy fails the load, and served models stay ready", async () => {
  await using bucket = await RepositoryInS3.create({ ...model("m"), ...model("n") });
  await using triton = new Triton(servedOptions(explicit(bucket.path, "n")));
  await triton.ready();
  bucket.intercept = before("m/1/weights.bin", () => bucket.stop());
  expect(await load(triton, "m")).toMatch(/^INTERNAL Failed to get object at /);
  const rows = await serviceOf(triton).repositoryIndex(true);
  expect(rows).toEqual([{ name: "n", version: "1", state: "READY" }]);
});

it("a model that changes while it is copied is copied in its newest form", async () => {
  await using bucket = await RepositoryInS3.create(model("m"));
  bucket.intercept = before("m/1/weights.bin", () =>
    bucket.write({ "m/1/weights.bin": "other weights", "m/2/weights.bin": "and a new version" }),
  );
  await using triton = new Triton(servedOptions(explicit(bucket.path, "m")));
  await triton.ready();
  expect(await serviceOf(triton).repositoryIndex(true)).toEqual([
    { name: "m", version: "2", state: "READY" },
  ]);
  const [folder] = await readdir(copies);
  const names = await readdir(join(copies, folder!), { recursive: true });
  expect(names.filter((name) => name.includes("weights"))).toHaveLength(2);
});

it("a model deleted between listing and loading is reported as not found", async () => {
  await using bucket = await RepositoryInS3.create(model("m"));
  bucket.intercept = before("m/1/weights.bin", async () => {
    for (const name of Object.keys(model("m"))) await bucket.delete(name);
  });
  await using triton = new Triton(servedOptions(explicit(bucket.path)));
  await triton.ready();
  expect(await load(triton, "m")).toBe(
    "NOT_FOUND failed to poll model 'm': model not found in any model repository.",
  );
});

it("other models load and unload while one is copied", async () => {
  await using bucket = await RepositoryInS3.create({ ...model("slow"), ...model("n") });
  const hold = withResolvers();
  const held = withResolvers();
  bucket.intercept = before("slow/1/weights.bin", () => {
    held.resolve();
    return hold.promise;
  });
  await using triton = new Triton(servedOptions(explicit(bucket.path)));
  await triton.ready();
  const slow = triton.loadModel("slow");
  await held.promise;
  await triton.loadModel("n");
  await triton.unloadModel("n");
  hold.resolve();
  await slow;
  expect(await serviceOf(triton).repositoryIndex(true)).toEqual([
    { name: "slow", version: "1", state: "READY" },
  ]);
});

it("models of directories load while the bucket cannot be reached", async () => {
  await using bucket = await RepositoryInS3.create(model("far"));
  await using disk = await RepositoryOnDisk.create(model("near"));
  await using triton = new Triton(servedOptions(explicit([bucket.path, disk.path])));
  await triton.ready();
  await bucket.stop();
  expect(await load(triton, "near")).toBe("done");
  expect(await load(triton, "far")).toMatch(/^INTERNAL Could not list .* ECONNREFUSED/);
});

it("closing cancels a copy in progress", async () => {
  await using bucket = await RepositoryInS3.create(model("m"));
  const held = withResolvers();
  const hold = withResolvers();
  bucket.intercept = before("m/1/weights.bin", () => {
    held.resolve();
    return hold.promise;
  });
  const triton = new Triton(servedOptions(explicit(bucket.path, "m")));
  const ready = outcomeOf(triton.ready());
  await held.promise;
  await triton.close();
  expect(await ready).toMatch(/^UNAVAILABLE/);
  expect(await readdir(copies)).toEqual([]);
  hold.resolve();
});

function withResolvers() {
  let resolve: () => void = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
