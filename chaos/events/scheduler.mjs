import { setTimeout as sleep } from "node:timers/promises";
import { WrongAnswer } from "../oracle/journal.mjs";
import { CRASH, EXHAUST } from "../repository/models.mjs";
import { machineEvents } from "./machine.mjs";
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

/* Instances of models that die: their processes are killed, and requests end or exhaust their workers. */

/** Kills the process of an instance. Its restart is awaited, so no instance is killed while it loads. */
const killProcess = (server) => ({
  name: "model process killed",
  needs: [`instances of ${server}`],
  async run({ servers, random, log }) {
    const one = servers[server];
    const pids = one.modelProcesses();
    if (pids.length === 0) return;
    const before = one.restarts;
    const pid = random.pick(pids);
    log.note(this.name, { server, detail: `pid ${pid}` });
    process.kill(pid, "SIGKILL");
    await one.restarted(before);
  },
});

/** Kills a process that protects the server from orphans. Its model keeps working. */
const killGuardian = {
  name: "guardian of a Python model killed",
  needs: ["instances of serve"],
  async run({ servers, random, log }) {
    const pids = servers.serve.guardians();
    if (pids.length === 0) return;
    const pid = random.pick(pids);
    log.note(this.name, { server: "serve", detail: `pid ${pid}` });
    process.kill(pid, "SIGKILL");
  },
};

const poison = (name, server, model, value) => ({
  name,
  needs: [`instances of ${server}`],
  async run({ servers, clients, journal, log }) {
    const before = servers[server].restarts;
    log.note(name, { server, model });
    await journal.record({ protocol: "crashing requests", server, model }, async () => {
      const inputs = { x: { datatype: "FP32", shape: [1, 1], data: Float32Array.of(value) } };
      await clients[server].http.infer(model, { inputs });
      throw new WrongAnswer("expected the worker to die, got an answer");
    });
    await servers[server].restarted(before);
  },
});

export const instanceEvents = [
  killProcess("serve"),
  killProcess("serve"),
  killProcess("program"),
  killGuardian,
  poison("worker thread ended", "serve", "js_thread", CRASH),
  poison("worker thread ended", "program", "thread", CRASH),
  poison("worker thread exhausted its heap", "serve", "js_limited", EXHAUST),
];

/* Models that requests load, load again and unload, over both protocols. */

const MODELS = ["loaded_js", "loaded_onnx"];

const loadAgain = {
  name: "model loaded again",
  needs: ["controlled models"],
  async run({ clients, random, log }) {
    const [model, protocol] = [random.pick(MODELS), random.pick(["http", "grpc"])];
    const event = log.begin(this.name, { server: "program", model, detail: protocol });
    await clients.program[protocol].loadModel(model);
    log.end(event);
  },
};

/** The only time in which requests of the model may be refused. */
const unloadAndLoad = {
  name: "model unloaded and loaded",
  needs: ["controlled models"],
  async run({ clients, random, log }) {
    const [model, protocol] = [random.pick(MODELS), random.pick(["http", "grpc"])];
    const event = log.begin(this.name, { server: "program", model, detail: protocol });
    await clients.program[protocol].unloadModel(model);
    await sleep(random.between(0, 1000));
    await clients.program[protocol].loadModel(model);
    log.end(event);
  },
};

export const modelControlEvents = [loadAgain, unloadAndLoad];

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
