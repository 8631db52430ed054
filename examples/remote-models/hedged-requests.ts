import { remote } from "@tritonjs/backends/remote";
import { Triton } from "@tritonjs/core";
import { openReplica } from "./replica.js";

/** A batch that has no answer after 50 ms also goes to the idle replica, and the slow call is cancelled. */
export async function hedgedRequests(): Promise<void> {
  let isFirst = true;
  let cancelled = () => {};
  const wasCancelled = new Promise<void>((resolve) => {
    cancelled = resolve;
  });
  /** Whichever replica gets the first batch hangs. */
  const before = async (signal: AbortSignal): Promise<void> => {
    if (!isFirst) return;
    isFirst = false;
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    cancelled();
  };
  const replicas = [await openReplica({ before }), await openReplica({ before })];

  const triton = new Triton();
  const urls = replicas.map(({ url }) => url);
  triton.bind({ modelName: "double", inferFunc: await remote({ urls, model: "double", hedgeAfterMs: 50 }) });
  const { y } = await triton.infer("double", { x: [[21]] });
  console.log(`one replica hangs, and the other one answers ${y!.get(0, 0)}`);
  await wasCancelled;
  console.log("the call that hung was cancelled");
  await triton.close();
  for (const replica of replicas) await replica.close();
}
