import { Triton } from "@tritonjs/core";
import { serviceOf } from "@tritonjs/server";
import { VirtualClock } from "@tritonjs/testing";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { RepositoryInS3, S3_KEYS } from "../../../../test/support/repository-in-s3.js";
import { identityConfig, RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";
import { SeededRandom } from "../../../../test/support/seeded-random.js";
import { type ServedOptions, servedOptions } from "../../../../test/support/served-options.js";

const POLL_SECS = 20;
const REPLICAS = 6;

/** A clock that notes the delays of timers that can be polls. */
class PollClock extends VirtualClock {
  readonly pauses: number[] = [];

  override setTimer(delayMs: number, run: () => void) {
    if (delayMs >= 16_000 && delayMs <= POLL_SECS * 1_000) this.pauses.push(delayMs);
    return super.setTimer(delayMs, run);
  }
}

const quiet = { error() {}, warn() {}, info() {}, debug() {} };
const files = { "m/config.pbtxt": identityConfig(), "m/1/weights.bin": "weights" };

beforeAll(() => {
  Object.assign(process.env, S3_KEYS);
  const random = new SeededRandom(1);
  vi.spyOn(Math, "random").mockImplementation(() => random.next());
});

afterAll(() => {
  vi.restoreAllMocks();
});

const polling = (path: string, clock: VirtualClock, options: ServedOptions = {}) =>
  new Triton(
    servedOptions({
      modelRepository: path,
      modelControlMode: "poll",
      repositoryPollSecs: POLL_SECS,
      logger: quiet,
      clock,
      ...options,
    }),
  );

it("replicas that start together poll a bucket apart from each other, each within the interval", async () => {
  await using bucket = await RepositoryInS3.create(files);
  const clock = new PollClock();
  const replicas = Array.from({ length: REPLICAS }, () => polling(bucket.path, clock));
  await Promise.all(replicas.map((replica) => replica.ready()));
  await expect.poll(() => clock.pauses.length).toBe(REPLICAS);
  const sorted = [...clock.pauses].sort((a, b) => a - b);
  expect(new Set(sorted).size).toBe(REPLICAS);
  // The first and the last one are apart by more than half of the jitter.
  expect(sorted.at(-1)! - sorted[0]!).toBeGreaterThan(1_000);

  await bucket.write({ "m/2/weights.bin": "newer" });
  await clock.advance(POLL_SECS * 1_000);
  await expect.poll(() => clock.pauses.length).toBe(2 * REPLICAS);
  for (const replica of replicas) {
    expect(await serviceOf(replica).repositoryIndex(true)).toMatchObject([{ name: "m", version: "2" }]);
    await replica.close();
  }
});

it("a directory is polled after exactly the interval", async () => {
  await using models = await RepositoryOnDisk.create(files);
  const clock = new PollClock();
  await using triton = polling(models.path, clock);
  await triton.ready();
  await expect.poll(() => clock.pauses).toEqual([POLL_SECS * 1_000]);
});

/** A configuration for both versions of `m`; `broken` makes version 2 fail to load. */
const versions = (broken: boolean) =>
  identityConfig(
    `version_policy { all { } } ${broken ? 'parameters { key: "broken" value { string_value: "2" } }' : ""}`,
  ).replace('"identity"', '"fussy"');

/** A server of a polled bucket whose backend counts how often each version is loaded. */
async function fussyServer(bucket: RepositoryInS3, options: ServedOptions = {}) {
  const clock = new PollClock();
  const loads: number[] = [];
  const triton = polling(bucket.path, clock, {
    ...options,
    backends: {
      fussy: ({ version, config }) => ({
        backendName: "fussy",
        platform: "",
        hosting: {},
        describe: () => undefined,
        createExecutor: () => ({
          details: {},
          mustFinish: false,
          async start() {
            loads.push(version);
            if (config.parameters.broken?.stringValue === String(version)) throw new Error("it is broken");
          },
          execute: async ({ requests }) =>
            requests.map(({ inputs }) => new Map([["OUTPUT0", inputs.get("INPUT0")!]])),
          async stop() {},
        }),
      }),
    },
  });
  await triton.ready();
  await expect.poll(() => clock.pauses.length).toBe(1);
  const poll = async () => {
    const polls = clock.pauses.length;
    await clock.advance(POLL_SECS * 1_000);
    await expect.poll(() => clock.pauses.length).toBe(polls + 1);
  };
  /** The metrics of the repository, without their comments. */
  const metrics = async () =>
    (await serviceOf(triton).metrics())
      .split("\n")
      .filter((line) => /^tritonjs_(model_load|repository)/.test(line));
  return { triton, loads, poll, metrics };
}

describe("a broken version in a polled bucket", () => {
  const first = { "m/config.pbtxt": versions(false), "m/1/weights.bin": "first" };
  const second = { "m/config.pbtxt": versions(true), "m/2/weights.bin": "second" };

  it.each([
    [false, false],
    [true, true],
  ])("with readyWithOlderVersion: %s leaves the server ready: %s", async (readyWithOlderVersion, isReady) => {
    await using bucket = await RepositoryInS3.create(first);
    const { triton, poll } = await fussyServer(bucket, { readyWithOlderVersion });
    await using _closed = triton;
    await bucket.write(second);
    await poll();
    expect(await serviceOf(triton).repositoryIndex(false)).toMatchObject([
      { version: "1", state: "READY" },
      { version: "2", state: "UNAVAILABLE", reason: expect.stringContaining("it is broken") },
    ]);
    expect(await serviceOf(triton).checkReady()).toBe(isReady);
    expect([...(await triton.infer("m", { INPUT0: [[7]] })).OUTPUT0!.data]).toEqual([7]);
  });

  it("is copied and loaded once, and again when its files change", async () => {
    await using bucket = await RepositoryInS3.create(first);
    const { triton, poll, loads, metrics } = await fussyServer(bucket);
    await using _closed = triton;
    expect(await metrics()).toEqual([
      'tritonjs_model_load_failure_total{model="m"} 0',
      'tritonjs_model_load_failing{model="m"} 0',
      "tritonjs_repository_poll_failure_total 0",
    ]);
    await bucket.write(second);
    await poll();
    const [copied, loaded] = [bucket.downloads, [...loads]];
    expect(loaded).toContain(2);
    await poll();
    await poll();
    expect([bucket.downloads, loads]).toEqual([copied, loaded]);
    const failing = [
      'tritonjs_model_load_failure_total{model="m"} 1',
      'tritonjs_model_load_failing{model="m"} 1',
      "tritonjs_repository_poll_failure_total 0",
    ];
    expect(await metrics()).toEqual(failing);

    await bucket.write({ "m/config.pbtxt": versions(false) });
    await poll();
    expect(bucket.downloads.length).toBe(copied.length + 1);
    expect(await serviceOf(triton).repositoryIndex(true)).toMatchObject([{ version: "1" }, { version: "2" }]);
    expect(serviceOf(triton).isReady()).toBe(true);
    expect((await metrics())[1]).toBe('tritonjs_model_load_failing{model="m"} 0');
  });

  it("does not leave a server ready whose model has no other version", async () => {
    await using bucket = await RepositoryInS3.create(files);
    const { triton, poll } = await fussyServer(bucket, { readyWithOlderVersion: true });
    await using _closed = triton;
    await bucket.write({ "n/config.pbtxt": versions(true), "n/2/weights.bin": "second" });
    await poll();
    expect(serviceOf(triton).isReady()).toBe(false);
  });
});

it("a poll that cannot read the bucket or a model is counted", async () => {
  await using bucket = await RepositoryInS3.create(files);
  const { triton, poll, metrics } = await fussyServer(bucket);
  await using _closed = triton;
  await bucket.write({ "n/config.pbtxt": "oops" });
  await poll();
  expect(await metrics()).toEqual([
    'tritonjs_model_load_failure_total{model="m"} 0',
    'tritonjs_model_load_failure_total{model="n"} 1',
    'tritonjs_model_load_failing{model="m"} 0',
    'tritonjs_model_load_failing{model="n"} 1',
    "tritonjs_repository_poll_failure_total 1",
  ]);
  await bucket.delete("n/config.pbtxt");
  bucket.intercept = (_, response) => {
    response.writeHead(403).end();
    return true;
  };
  await poll();
  expect((await metrics()).at(-1)).toBe("tritonjs_repository_poll_failure_total 2");
  bucket.intercept = () => false;
  await poll();
  expect(await metrics()).toEqual([
    'tritonjs_model_load_failure_total{model="m"} 0',
    'tritonjs_model_load_failing{model="m"} 0',
    "tritonjs_repository_poll_failure_total 2",
  ]);
});
