import { Agent, get } from "node:http";
import { percentile } from "./pairs.mjs";

const EVERY_MS = 20;

/** Probes a server's health repeatedly. `stop` returns the 99th percentile of the latency in ms. */
export function probeHealth(url) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const latencies = [];
  let stopped = false;
  const probe = async () => {
    while (!stopped) {
      const start = performance.now();
      await new Promise((resolve, reject) => {
        const request = get(url, { agent }, (response) => response.resume().once("end", resolve));
        request.once("error", reject);
      });
      latencies.push(performance.now() - start);
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    }
  };
  const done = probe();
  return {
    async stop() {
      stopped = true;
      await done;
      agent.destroy();
      return percentile(latencies, 99);
    },
  };
}
