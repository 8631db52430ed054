import type { Channel, ChannelListener } from "./channel.js";
import { openProcess } from "./process-channel.js";
import { openThread, prepareThreads } from "./thread-channel.js";
import type { WorkerContext, WorkerProgram } from "./worker-program.js";

/** What decides where a worker runs. */
type WorkerPlace = Pick<WorkerContext, "hosting" | "nice">;

export function isolationOf({ hosting }: WorkerPlace): "process" | "worker" {
  return hosting?.isolation === "process" ? "process" : "worker";
}

/** Starts a worker for a program where its context says: a thread, which may be a spare one, or a process. */
export function openWorker(
  { reusesThread = false }: WorkerProgram,
  place: WorkerPlace,
  listener: ChannelListener,
): Channel {
  const open = isolationOf(place) === "process" ? openProcess : openThread;
  return open(
    { heapLimitMb: place.hosting?.heapLimitMb, nice: place.nice, reusable: reusesThread },
    listener,
  );
}

/** Starts threads for workers that will be opened next, as many as these are threads that another model may have used. */
export function prepareWorkers(program: WorkerProgram, place: WorkerPlace, count: number): void {
  const takesSpares = program.reusesThread === true && place.hosting?.heapLimitMb === undefined;
  if (takesSpares && isolationOf(place) === "worker") prepareThreads(program.entry.href, count);
}
