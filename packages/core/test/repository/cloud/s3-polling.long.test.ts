import { Triton } from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/core/testing";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { RepositoryInS3, S3_KEYS } from "../../../../../test/support/repository-in-s3.js";
import { identityConfig, RepositoryOnDisk } from "../../../../../test/support/repository-on-disk.js";
import { SeededRandom } from "../../../../../test/support/seeded-random.js";

const POLL_SECS = 10;
const REPLICAS = 6;

/** A clock that notes the delays of timers that can be polls. */
class PollClock extends VirtualClock {
  readonly pauses: number[] = [];

  override setTimer(delayMs: number, run: () => void) {
    if (delayMs >= 8_000 && delayMs <= POLL_SECS * 1_000) this.pauses.push(delayMs);
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

const polling = (path: string, clock: VirtualClock) =>
  new Triton({
    modelRepository: path,
    modelControlMode: "poll",
    repositoryPollSecs: POLL_SECS,
    logger: quiet,
    clock,
  });

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
    expect(await replica.service.repositoryIndex(true)).toMatchObject([{ name: "m", version: "2" }]);
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
