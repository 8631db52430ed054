import { setTimeout as sleep } from "node:timers/promises";
import { instanceEvents } from "./instances.mjs";
import { machineEvents } from "./machine.mjs";
import { modelControlEvents } from "./model-control.mjs";
import { redisEvents } from "./redis.mjs";
import { repositoryEvents } from "./repository.mjs";

/** All events that this machine permits. */
export function possibleEvents({ redis, clockFile, isTmpfs, hasPrlimit }) {
  const has = {
    redis: redis !== undefined,
    clock: clockFile !== undefined,
    disk: isTmpfs,
    limits: hasPrlimit,
  };
  const all = [
    ...[...instanceEvents, ...modelControlEvents, ...machineEvents],
    ...[...repositoryEvents, ...redisEvents],
  ];
  return all.filter(({ needs }) => needs.every((need) => has[need] ?? true));
}

/** Begins events at random. Two events that need the same thing never overlap. */
export class EventScheduler {
  /** Events that failed: the servers did not do what the event expects. */
  faults = [];
  #context;
  #events;
  #busy = new Set();
  #running = new Set();
  #over;
  #isStopped = false;

  constructor(context) {
    this.#context = context;
    this.#events = possibleEvents(context);
  }

  start() {
    this.#over = this.#loop();
  }

  /** Begins no more events. Resolves when the running ones have ended. */
  async stop() {
    this.#isStopped = true;
    await this.#over;
    await Promise.all(this.#running);
  }

  async #loop() {
    const { random } = this.#context;
    while (!this.#isStopped) {
      await sleep(random.between(100, 1500));
      const event = random.pick(this.#events);
      if (event.needs.some((need) => this.#busy.has(need))) continue;
      const running = this.#run(event);
      this.#running.add(running);
      running.then(() => this.#running.delete(running));
    }
  }

  async #run(event) {
    for (const need of event.needs) this.#busy.add(need);
    try {
      await event.run(this.#context);
    } catch (error) {
      this.faults.push(`event '${event.name}': ${error.stack}`);
    }
    for (const need of event.needs) this.#busy.delete(need);
  }
}
