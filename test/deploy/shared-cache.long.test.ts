import { batch, type ModelHandle, Triton } from "@tritonjs/core";
import { redisCache } from "@tritonjs/operations/redis";
import { afterEach, expect, it, vi } from "vitest";
import { programOf } from "./front-proxy.js";
import { RedisServer } from "./redis-server.js";

const missing = programOf("redis-server") === undefined;
const note = missing ? " (skipped: no redis-server here)" : "";

const inputs = [{ name: "x", dtype: "FP32", shape: [1] }] as const;
const outputs = [{ name: "y", dtype: "FP32", shape: [1] }] as const;
type Handle = ModelHandle<typeof inputs, typeof outputs>;

const LOOKUP_TIMEOUT_MS = 50;

/** A server with the cache, as another process would be to it. */
function server(url: string): { triton: Triton; model: Handle } {
  const triton = new Triton({ responseCache: redisCache({ url, lookupTimeoutMs: LOOKUP_TIMEOUT_MS }) });
  const model = triton.bind({
    modelName: "double",
    inputs,
    outputs,
    inferFunc: batch(({ x }) => ({ y: x.data.map((value) => 2 * value) })),
    config: { responseCache: true },
  });
  return { triton, model };
}

/** Asks a model for repeating values until it is stopped, and checks the answers. */
class Load {
  answers = 0;
  readonly wrong: string[] = [];
  readonly #over: Promise<void>;
  #stopped = false;

  constructor(model: Handle) {
    this.#over = this.#send(model);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#over;
  }

  async #send(model: Handle): Promise<void> {
    for (let i = 0; !this.#stopped; i++) {
      const x = i % 20;
      try {
        const { y } = await model.inferSample({ x: [x] });
        if (y.get(0) !== 2 * x) this.wrong.push(`expected ${2 * x}, got ${y.get(0)}`);
      } catch (error) {
        this.wrong.push((error as Error).message);
      }
      this.answers++;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

const hitsOf = (model: Handle) => model.statistics().inferenceStats.cacheHit.count;

afterEach(() => {
  vi.restoreAllMocks();
});

it.skipIf(missing)(
  `two servers share a Redis, which hangs, dies and comes back under load${note}`,
  async () => {
    vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    await using redis = await RedisServer.start();
    const servers = [server(redis.url), server(redis.url)];
    const models = servers.map(({ model }) => model);
    const loads = models.map((model) => new Load(model));

    const moreHits = async () => {
      for (const model of models) {
        const before = hitsOf(model);
        await expect.poll(() => hitsOf(model)).toBeGreaterThan(before + 50);
      }
    };
    const moreAnswers = async () => {
      for (const load of loads) {
        const before = load.answers;
        await expect.poll(() => load.answers).toBeGreaterThan(before + 20);
      }
    };

    await moreHits();
    redis.hang();
    // Redis answers nothing meanwhile, so these answers show that each lookup has a time limit.
    await moreAnswers();
    redis.wake();
    await moreHits();
    await redis.kill();
    await moreAnswers();
    await redis.startAgain();
    await moreHits();

    for (const load of loads) await load.stop();
    expect(loads.map(({ wrong }) => wrong)).toEqual([[], []]);
    for (const { triton } of servers) await triton.close();
  },
);
