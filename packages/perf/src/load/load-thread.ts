import { parentPort, workerData } from "node:worker_threads";
import { agreeOnTime } from "../target/carrier.js";
import { openCarrier } from "../target/open-carrier.js";
import type { LoopCall, LoopReply } from "./load-generator.js";
import { LoadLoop, type ThreadPlan } from "./load-loop.js";
import { transferOf } from "./request-records.js";

/* The program of a generator thread: a loop that answers the calls of the main thread. */

const plan = workerData as ThreadPlan;
agreeOnTime(plan.epochOffset);
const loop = new LoadLoop(plan, (seed, onEnd) => openCarrier(plan.carrier, seed, onEnd));

parentPort!.on("message", async ({ id, name, args }: LoopCall) => {
  try {
    if (name === "take") {
      const window = loop.take();
      parentPort!.postMessage({ id, value: window } satisfies LoopReply, transferOf(window.records));
      return;
    }
    const value = await (loop[name] as (...given: readonly unknown[]) => Promise<void>)(...args);
    parentPort!.postMessage({ id, value } satisfies LoopReply);
  } catch (error) {
    parentPort!.postMessage({ id, error } satisfies LoopReply);
  }
});
