import { setTimeout as sleep } from "node:timers/promises";

/* Faults of the Redis behind the response cache. None of them may fail a request. */

const hangs = {
  name: "Redis hangs",
  needs: ["redis"],
  async run({ redis, random, log }) {
    const event = log.begin(this.name);
    redis.signal("SIGSTOP");
    await sleep(random.between(300, 3000));
    redis.signal("SIGCONT");
    log.end(event);
  },
};

const dies = {
  name: "Redis killed",
  needs: ["redis"],
  async run({ redis, random, log }) {
    const event = log.begin(this.name);
    await redis.kill();
    await sleep(random.between(0, 2000));
    await redis.start();
    log.end(event);
  },
};

const full = {
  name: "Redis full",
  needs: ["redis"],
  async run({ redis, random, log }) {
    const event = log.begin(this.name);
    await redis.limitMemory(1);
    await sleep(random.between(300, 2000));
    await redis.limitMemory(0);
    log.end(event);
  },
};

export const redisEvents = [hangs, dies, full];
