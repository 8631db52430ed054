/*
 * Sends requests at random times and at a given rate, whatever the server does, like many independent clients. Latency
 * counts from the time when a request should have been sent. Answers within the SLO are goodput.
 */
import { Agent, request } from "node:http";
import { percentile } from "../support/pairs.mjs";
import { answerCalls } from "../support/program.mjs";

const MAX_SOCKETS = 512;

async function run({ url, headers, body, rate, seconds, sloMs }) {
  const bytes = Buffer.from(body, "base64");
  const agent = new Agent({ keepAlive: true, maxSockets: MAX_SOCKETS });
  const options = { method: "POST", agent, headers: { ...headers, "content-length": bytes.length } };
  const open = new Set();
  const tally = { sent: 0, good: 0, late: 0, refused: 0, failed: 0 };
  const latencies = [];
  const refusals = [];
  const send = (at) => {
    tally.sent++;
    const call = request(url, options, (response) => {
      response.resume().once("end", () => {
        const latency = performance.now() - at;
        open.delete(call);
        if (response.statusCode === 200) {
          latencies.push(latency);
          tally[latency <= sloMs ? "good" : "late"]++;
        } else if (response.statusCode === 503) {
          refusals.push(latency);
          tally.refused++;
        } else tally.failed++;
      });
    });
    open.add(call);
    call.once("error", () => {
      if (open.delete(call)) tally.failed++;
    });
    call.end(bytes);
  };
  const loop = performance.eventLoopUtilization();
  let next = performance.now();
  const end = next + seconds * 1000;
  while (next < end) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    for (const now = performance.now(); next <= now && next < end; ) {
      send(next);
      next -= (Math.log(1 - Math.random()) * 1000) / rate;
    }
  }
  const { utilization } = performance.eventLoopUtilization(loop);
  await new Promise((resolve) => setTimeout(resolve, sloMs));
  // No client waits for the remaining answers.
  const unanswered = open.size;
  for (const call of [...open]) {
    open.delete(call);
    call.destroy();
  }
  agent.destroy();
  return {
    ...tally,
    unanswered,
    goodput: tally.good / seconds,
    p99Ms: latencies.length > 0 ? percentile(latencies, 99) : 0,
    refusedP50Ms: refusals.length > 0 ? percentile(refusals, 50) : 0,
    clientBusy: utilization,
  };
}

answerCalls({ run });
