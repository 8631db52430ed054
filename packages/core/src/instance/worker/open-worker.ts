import type { Channel, ChannelListener } from "./channel.js";
import { openProcess } from "./process-channel.js";
import { openThread, prepareThreads } from "./thread-channel.js";
import type { WorkerPlace, WorkerProgram } from "./worker-program.js";

export function isolationOf({ hosting }: WorkerPlace): "process" | "worker" {
  return hosting?.isolation === "process" ? "process" : "worker";
}

/**
 * True if the worker may be a thread that had another model, and may be kept for the next one. False if instances are
 * recycled or limited in memory, because their threads must not accumulate state.
 */
function reuses({ reusesThread = false }: WorkerProgram, { hosting }: WorkerPlace): boolean {
  return reusesThread && hosting?.heapLimitMb === undefined && hosting?.recycle === undefined;
}

/** Starts a worker for a program in the given place: a thread, which may be a spare one, or a process. */
export function openWorker(program: WorkerProgram, place: WorkerPlace, listener: ChannelListener): Channel {
  const open = isolationOf(place) === "process" ? openProcess : openThread;
  const { hosting, nice } = place;
  return open({ heapLimitMb: hosting?.heapLimitMb, nice, reusable: reuses(program, place) }, listener);
}

/** Starts threads ahead for the next workers, if these may be kept threads. */
export function prepareWorkers(program: WorkerProgram, place: WorkerPlace, count: number): void {
  if (isolationOf(place) === "worker" && reuses(program, place)) prepareThreads(program.entry.href, count);
}
