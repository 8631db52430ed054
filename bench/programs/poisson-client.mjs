/*
 * Requests that come at random, at a given rate, whatever the server does: those of a crowd that does not know of one
 * another. Latency counts from when a request should have been sent. What is answered within the SLO is goodput.
 */
import { Agent, request } from "node:http";
import { answerCalls } from "../support/program.mjs";
import { percentile } from "../support/statistics.mjs";

const MAX_SOCKETS = 512;

async function run({ url, headers, body, rate, seconds, sloMs }) {
  const bytes = Buffer.from(body, "base64");
  const agent = new Agent({ keepAlive: true, maxSockets: MAX_SOCKETS });
  const options = { method: "POST", agent, headers: { ...headers, "content-length": bytes.length } };
  const tally = { sent: 0, good: 0, refused: 0, late: 0, latencies: [] };
  const loop = performance.eventLoopUtilization();
  const start = performance.now();
  const send = (at) => {
    tally.sent++;
    const call = request(url, options, (response) => {
      response.resume().once("end", () => {
        const latency = performance.now() - at;
        if (response.statusCode !== 200) tally.refused++;
        else {
          tally.latencies.push(latency);
          if (latency <= sloMs) tally.good++;
          else tally.late++;
        }
      });
    });
    call.once("error", () => tally.refused++);
    call.end(bytes);
  };
  let next = start;
  const end = start + seconds * 1000;
  while (next < end) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    for (const now = performance.now(); next <= now && next < end; ) {
      send(next);
      next -= (Math.log(1 - Math.random()) * 1000) / rate;
    }
  }
  await new Promise((resolve) => setTimeout(resolve, sloMs));
  const { utilization } = performance.eventLoopUtilization(loop);
  const { latencies, ...counts } = tally;
  const p99Ms = latencies.length > 0 ? percentile(latencies, 99) : 0;
  agent.destroy();
  return { ...counts, goodput: tally.good / seconds, p99Ms, clientBusy: utilization };
}

answerCalls({ run });
