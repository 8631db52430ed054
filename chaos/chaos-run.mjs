import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "./clock.mjs";
import { EventLog } from "./events/event-log.mjs";
import { setClock } from "./events/machine.mjs";
import { EventScheduler } from "./events/scheduler.mjs";
import { lastRequests } from "./last-requests.mjs";
import { clientsOf, Traffic } from "./load/traffic.mjs";
import { excuseOf, faultsOfDeaths } from "./oracle/excuses.mjs";
import { Journal } from "./oracle/journal.mjs";
import { faultsOfHoldings, holdingsOf, MemoryWatch, sharedObjects } from "./oracle/leaks.mjs";
import { faultsOfStatistics } from "./oracle/statistics.mjs";
import { SeededRandom } from "./random.mjs";
import { startBoundServer } from "./servers/bound-server.mjs";
import { findRedis, RedisProcess } from "./servers/redis-process.mjs";
import { startServeCommand } from "./servers/server-process.mjs";

/** Load before the first event, in which caches, pools and compiled code come into being. */
const WARM_UP_MS = 5000;
/** Share of the samples of memory that belongs to the warm-up. */
const WARM_UP_SHARE = 0.2;
/** Growth of the resident memory that a run of half an hour or more may show. Heaps of shorter runs still grow. */
const LONG_GROWTH = 1.05;
const LONG_MINUTES = 30;
/** Resident memory of a server that no run may exceed, in MiB: its heap, the requests in flight, and code. */
const MOST_MB = 1024;
/** Causes for which a request is refused before it counts in the statistics. */
const BEFORE_THE_QUEUE = new Set([
  "request memory spent",
  "model removed",
  "model unloaded",
  "sequence gone",
  "no descriptor free",
  "instance could not restart",
]);

const python = process.env.TRITONJS_PYTHON ?? "python3";
const hasPython = spawnSync(python, ["-c", "import numpy"], { stdio: "ignore" }).status === 0;

/**
 * Runs servers under load and faults, and judges how every request ended.
 *
 * @param write shows a line of progress
 * @returns the report: `faults` is empty if everything is as it must be
 */
export async function chaosRun({ minutes, seed, logs }, write) {
  const random = new SeededRandom(seed);
  const workplace = new Workplace();
  const journal = new Journal();
  const log = new EventLog(write);
  const faults = [];
  const skipped = [];
  let servers = {};
  let redis;
  try {
    const clockFile = join(workplace.folder, "clock");
    setClock(clockFile, 0);
    const clockEnvironment = workplace.clockEnvironment(clockFile);
    const redisProgram = findRedis();
    if (redisProgram === undefined) skipped.push("Redis: redis-server is not installed");
    else {
      redis = new RedisProcess(redisProgram, workplace.folder);
      await redis.start();
    }
    if (!hasPython) skipped.push(`Python models: there is no ${python} with numpy`);
    if (clockEnvironment === undefined) skipped.push("clock jumps: libfaketime is not installed");
    const hasPrlimit = spawnSync("prlimit", ["--version"]).status === 0;
    if (!hasPrlimit) skipped.push("no descriptor free: prlimit is not installed");
    if (!workplace.isTmpfs) skipped.push("full disk: this user cannot mount a tmpfs");

    const env = { ...clockEnvironment, TMPDIR: workplace.temporary, TRITONJS_PYTHON: python };
    const logFolder = logs ?? workplace.folder;
    mkdirSync(logFolder, { recursive: true });
    const serve = startServeCommand({
      folder: workplace.disk,
      python: hasPython,
      logFile: join(logFolder, "serve.log"),
      env,
    });
    const program = startBoundServer({
      folder: workplace.folder,
      redis: redis?.url,
      seed,
      logFile: join(logFolder, "program.log"),
      env,
      onInProcess: (end) => journal.recordElsewhere(end),
    });
    servers = { serve, program };
    await Promise.all([serve.started(), program.started()]);
    const clients = { serve: clientsOf(serve), program: clientsOf(program) };
    await Promise.all(["loaded_js", "loaded_onnx"].map((model) => clients.program.http.loadModel(model)));

    const before = { serve: holdingsOf(serve), program: holdingsOf(program) };
    const heapBefore = await program.heapBytes();
    const temporaryBefore = temporaryFiles(workplace).length;
    const memory = new MemoryWatch(servers);
    const traffic = new Traffic({ journal, random: random.fork("load"), python: hasPython });
    traffic.startServed(clients.serve);
    traffic.startBound(clients.program);
    program.startLoad();
    await sleep(Math.min(WARM_UP_MS, minutes * 10_000));
    memory.start(Math.min(5000, minutes * 600));

    const scheduler = new EventScheduler({
      random: random.fork("events"),
      servers,
      clients,
      journal,
      log,
      redis,
      clockFile: clockEnvironment && clockFile,
      isTmpfs: workplace.isTmpfs,
      hasPrlimit,
      folder: workplace.disk,
      state: { version: 1 },
    });
    scheduler.start();
    const watch = setInterval(() => journal.findStuck(), 1000);
    await Promise.race([sleep(minutes * 60_000), ...Object.values(servers).map(unexpectedEnd)]);
    await scheduler.stop();
    memory.sample();
    memory.stop();
    await Promise.all([traffic.stop(), program.stopLoad()]);
    await traffic.close();
    log.note("load stopped");
    clearInterval(watch);
    faults.push(...scheduler.faults);

    const heapAfter = await program.heapBytes();
    for (const client of Object.values(clients)) {
      const regions = await client.http.getSystemSharedMemoryStatus().catch(() => []);
      if (regions.length > 0) faults.push(`${regions.length} shared memory regions are left`);
    }
    const statistics = {};
    for (const [name, client] of Object.entries(clients)) {
      const { model_stats } = await client.http.getInferenceStatistics();
      statistics[name] = model_stats;
    }
    await Promise.all(Object.values(clients).map((client) => client.close()));
    for (const [name, server] of Object.entries(servers)) {
      const leaks = () => faultsOfHoldings(name, before[name], holdingsOf(server));
      await until(() => leaks().length === 0, "nothing leaked", 20_000).catch(() => faults.push(...leaks()));
    }
    const temporary = temporaryFiles(workplace);
    if (temporary.length > temporaryBefore)
      faults.push(`expected ${temporaryBefore} temporary files, got ${temporary.join(", ")}`);

    const growth = memory.growth(WARM_UP_SHARE);
    for (const [name, { own }] of Object.entries(growth)) {
      const limit = minutes >= LONG_MINUTES ? own.from * LONG_GROWTH : MOST_MB;
      if (own.to > limit)
        faults.push(`${name} has ${own.to.toFixed(0)} MiB at the end, expected at most ${limit.toFixed(0)}`);
    }

    const deaths = Object.values(servers).flatMap((server) => server.deaths);
    const judged = judge(journal, deaths, log);
    faults.push(...judged.faults);
    faults.push(...statisticsFaults(statistics, journal, judged));
    const last = await lastRequests({ servers, random, python: hasPython, log });
    faults.push(...last.faults);
    const objects = sharedObjects();
    if (objects.length > 0) faults.push(`shared memory objects are left: ${objects.join(", ")}`);
    faults.push(...journal.faults);
    return {
      seed,
      minutes,
      skipped,
      faults,
      requests: Object.fromEntries(journal.protocols),
      models: Object.fromEntries(journal.models),
      excuses: judged.excuses,
      excusesByModel: judged.byModel,
      events: log.counts(),
      deaths: deaths.length,
      memory: growth,
      heap: { from: heapBefore / 2 ** 20, to: heapAfter / 2 ** 20 },
      last: last.counts,
    };
  } finally {
    for (const server of Object.values(servers)) {
      server.signal("SIGCONT");
      server.signal("SIGKILL");
    }
    redis?.signal("SIGCONT");
    await redis?.kill();
    workplace.remove();
  }
}

/**
 * Temporary files of the servers. onnxruntime opens an empty log of its own in each process, and leaves it there when the
 * process is killed.
 */
function temporaryFiles({ temporary }) {
  return readdirSync(temporary).filter((name) => !/^mat-debug-\d+\.log$/.test(name));
}

/** Rejects when a server ends before it is told to. */
async function unexpectedEnd(server) {
  const { code, signal } = await server.ended;
  throw new Error(`${server.name} ended with ${signal ?? code} during the run`);
}

/** Looks for the reason of each failure. */
function judge(journal, deaths, log) {
  const faults = [];
  const excuses = {};
  const byModel = {};
  const refused = { serve: new Map(), program: new Map() };
  for (const failure of journal.failures) {
    const excuse = excuseOf(failure, deaths, log);
    if (excuse === undefined) {
      const { protocol, server, model, code, reason, text } = failure;
      const why = `${code} ${reason}: ${text}`;
      faults.push(`${protocol} request to '${model}' of ${server} failed without a cause: ${why}`);
    } else {
      excuses[excuse] = (excuses[excuse] ?? 0) + 1;
      const key = `${failure.server}/${failure.model}: ${excuse}`;
      byModel[key] = (byModel[key] ?? 0) + 1;
    }
    if (BEFORE_THE_QUEUE.has(excuse)) {
      const counts = refused[failure.server];
      counts.set(failure.model, (counts.get(failure.model) ?? 0) + 1);
    }
  }
  faults.push(...faultsOfDeaths(journal.failures, deaths, log));
  return { faults, excuses, byModel, refused };
}

function statisticsFaults(statistics, journal, { refused }) {
  const { right = 0, failed = 0 } = journal.models.get("serve/chain") ?? {};
  // Each step of the ensemble that was answered counts at its model.
  const steps = new Map(
    ["js_process", hasPython ? "python_double" : "onnx_process"].map((name) => [
      name,
      { sure: right, open: failed },
    ]),
  );
  return Object.entries(statistics).flatMap(([server, reports]) =>
    faultsOfStatistics(
      server,
      reports,
      journal.models,
      refused[server],
      server === "serve" ? steps : new Map(),
    ),
  );
}

/** Bytes of the disk that events fill. The traces of an hour take some forty megabytes. */
const DISK = "96m";

const FAKETIME = ["/usr/lib/x86_64-linux-gnu/faketime", "/usr/lib/aarch64-linux-gnu/faketime"]
  .map((folder) => join(folder, "libfaketime.so.1"))
  .find((path) => existsSync(path));

/** The directories of a run: a small disk of its own where the user may mount one. */
export class Workplace {
  folder = mkdtempSync(join(tmpdir(), "tritonjs-chaos-"));
  /** The served repository and the traces. */
  disk = join(this.folder, "disk");
  /** Temporary files of the servers. */
  temporary = join(this.folder, "tmp");
  isTmpfs;

  constructor() {
    mkdirSync(this.disk);
    mkdirSync(this.temporary);
    const mount = ["-t", "tmpfs", "-o", `size=${DISK}`, "tritonjs-chaos", this.disk];
    this.isTmpfs = spawnSync("mount", mount).status === 0;
  }

  /** Environment of a server whose wall clock follows `clockFile`; undefined without libfaketime. */
  clockEnvironment(clockFile) {
    if (FAKETIME === undefined) return undefined;
    return {
      LD_PRELOAD: FAKETIME,
      FAKETIME_TIMESTAMP_FILE: clockFile,
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
      FAKETIME_CACHE_DURATION: "1",
    };
  }

  remove() {
    if (this.isTmpfs) spawnSync("umount", ["-l", this.disk]);
    rmSync(this.folder, { recursive: true, force: true });
  }
}
