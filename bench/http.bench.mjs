/*
 * What does HTTP cost over a bare server of node:http that reads the same body and answers the same bytes? For JSON the
 * bare server uses JSON.parse and JSON.stringify, and converts the numbers to FP32 in between, as the model does.
 */

import { binaryBody, compareServers, httpLoad, httpLoadTool, jsonBody } from "./support/load.mjs";
import { SECONDS } from "./support/pairs.mjs";
import { drawRatios } from "./support/plots.mjs";
import { startProgram } from "./support/program.mjs";
import { report } from "./support/report.mjs";

const cases = [
  { name: "64 B", target: 0.8, seconds: 1, request: binaryBody("small", [1, 16]) },
  { name: "600 KB", target: 0.9, seconds: 1, request: binaryBody("large", [150_000]) },
  {
    name: "600 KB JSON",
    target: 1.5,
    seconds: 2,
    json: true,
    request: jsonBody("large", 600_000),
    concurrencies: [16],
  },
];

const server = await startProgram("identity-server");
const { http } = await server.call("urls");
const rows = {};
const ratios = [];
for (const { name, target, seconds, request, json = false, concurrencies = [16, 64] } of cases) {
  const { path, headers, body } = request;
  const answer = await fetch(`${http}${path}`, {
    method: "POST",
    headers: { ...headers, "accept-encoding": "identity" },
    body,
  });
  if (!answer.ok) throw new Error(await answer.text());
  const bytes = Buffer.from(await answer.arrayBuffer());
  const bare = await startProgram("bare-http", { json });
  const { date, connection, "keep-alive": _, ...kept } = Object.fromEntries(answer.headers);
  await bare.call("answerWith", kept, bytes.toString("base64"));
  const there = await bare.call("url");
  for (const concurrency of concurrencies) {
    const label = `${name}, ${concurrency} at a time`;
    const load = (url) => (time) => httpLoad({ url: `${url}${path}`, headers, body }, concurrency, time);
    const { row, ratio } = await compareServers([server, load(http)], [bare, load(there)], {
      // wrk supports only whole seconds.
      seconds: Math.max(1, Math.round(seconds * SECONDS)),
    });
    rows[label] = row;
    ratios.push({ label, ...ratio, target });
  }
  await bare.stop();
}
await server.stop();

report("http", {
  rows,
  plots: { "": [drawRatios, "Answers a second over HTTP, compared with bare node:http", ratios] },
  note: `Load from ${httpLoadTool()}. The server has called [keepHeapRoom](operations.md#large-requests-and-the-heap).`,
});
