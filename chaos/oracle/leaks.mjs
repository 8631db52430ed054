import { readdirSync } from "node:fs";
import { OBJECT_PREFIX } from "../load/shared-memory.mjs";
import {
  descendants,
  descriptors,
  openFiles,
  residentMb,
  sockets,
  threadCount,
} from "../servers/processes.mjs";

/** What a server holds while no request is in flight. */
export function holdingsOf({ pid }) {
  return {
    descriptors: descriptors(pid),
    threads: threadCount(pid),
    processes: descendants(pid).length,
    files: openFiles(pid),
    sockets: sockets(pid),
  };
}

/**
 * What a server holds more than before the load.
 *
 * @returns descriptions of what was leaked
 */
export function faultsOfHoldings(name, before, after) {
  const faults = [];
  const more = (what, was, is, which = []) => {
    if (is <= was) return;
    const listed = which.length === 0 ? "" : `: ${which.join(", ")}`;
    faults.push(`${name} holds ${is} ${what}, and had ${was} before the load${listed}`);
  };
  more("sockets", before.descriptors.socket, after.descriptors.socket, after.sockets);
  more("pipes", before.descriptors.pipe, after.descriptors.pipe);
  const opened = after.files.filter((path) => !before.files.includes(path));
  more("open files", before.descriptors.file, after.descriptors.file, opened);
  // A spare thread, which waits for another model, has an event loop of its own.
  const spareThreads = Math.max(0, after.threads - before.threads);
  more("descriptors of event loops", before.descriptors.other + 8 * spareThreads, after.descriptors.other);
  more("processes", before.processes, after.processes);
  return faults;
}

/** Shared memory objects that belong to the run. */
export function sharedObjects() {
  return readdirSync("/dev/shm").filter((name) => name.startsWith(OBJECT_PREFIX));
}

/** Parts of a run for each of which a report has the median of the resident memory. */
const PARTS = 12;

/** Samples the resident memory of the servers, and of the processes that they started. */
export class MemoryWatch {
  /** `{ at, own, all }` by server, in MiB. */
  samples = new Map();
  #servers;
  #timer;
  #startedAt = performance.now();

  constructor(servers) {
    this.#servers = servers;
  }

  start(everyMs) {
    this.#timer = setInterval(() => this.sample(), everyMs);
    this.sample();
  }

  sample() {
    for (const [name, { pid }] of Object.entries(this.#servers)) {
      const own = residentMb(pid);
      const all = descendants(pid).reduce((sum, one) => sum + residentMb(one), own);
      const list = this.samples.get(name) ?? [];
      list.push({ at: (performance.now() - this.#startedAt) / 1000, own, all });
      this.samples.set(name, list);
    }
  }

  stop() {
    clearInterval(this.#timer);
  }

  /**
   * Memory after the warm-up and at the end, each the median of a tenth of the samples, and its course.
   *
   * @param warmUp share of the run that counts as warm-up
   */
  growth(warmUp) {
    return Object.fromEntries(
      [...this.samples].map(([name, list]) => {
        const first = Math.floor(list.length * warmUp);
        const count = Math.max(1, Math.floor(list.length / 10));
        const of = (from, what) => median(list.slice(from, from + count).map((sample) => sample[what]));
        const part = (what) => {
          const [from, to] = [of(first, what), of(list.length - count, what)];
          return { from, to, ratio: to / from };
        };
        return [name, { own: part("own"), all: part("all"), course: courseOf(list) }];
      }),
    );
  }
}

/** Medians of equal parts of a run, in MiB. They tell growth from a step. */
function courseOf(samples) {
  const place = (part) => Math.floor((part * samples.length) / PARTS);
  return Array.from({ length: Math.min(PARTS, samples.length) }, (_, part) => {
    const own = samples
      .slice(place(part), Math.max(place(part) + 1, place(part + 1)))
      .map((sample) => sample.own);
    return Math.round(median(own));
  });
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}
