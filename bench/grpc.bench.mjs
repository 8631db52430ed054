/* What does gRPC cost compared with a bare echo of grpc-js with the same codec? */
import {
  binaryBody,
  compareServers,
  framed,
  grpcCoreLoad,
  grpcLoad,
  grpcLoadTool,
  hasGrpcCore,
  httpLoad,
  inferMessage,
} from "./support/load.mjs";
import { SECONDS } from "./support/pairs.mjs";
import { drawRatios } from "./support/plots.mjs";
import { startProgram } from "./support/program.mjs";
import { report } from "./support/report.mjs";

const STREAM_MESSAGES = 200;
const small = await inferMessage("small", 64, true);
const large = await inferMessage("large", 600_000, false);
const unary = { method: "ModelInfer", scale: 1 };

const cases = [
  { ...unary, name: "64 B", target: 0.85, messages: [small], load: { connections: 4, streams: 8 } },
  {
    ...unary,
    name: "600 KB",
    target: 2,
    messages: [large],
    load: { connections: 4, streams: 2 },
    seconds: 2,
  },
  {
    name: "stream of 64 B",
    method: "ModelStreamInfer",
    target: 0.85,
    messages: Array.from({ length: STREAM_MESSAGES }, () => small),
    scale: STREAM_MESSAGES,
    load: { connections: 4, streams: 1 },
  },
];

/** Checks that both sides give the same answers; otherwise their speeds cannot be compared. */
async function assertSameAnswers(urls, { method, messages }) {
  const client = await startProgram("grpc-client");
  const body = Buffer.concat(messages.map(framed)).toString("base64");
  const ask = (url) => client.call("run", { url, method, body, connections: 1, streams: 1, seconds: 0 });
  const [here, there] = [await ask(urls[0]), await ask(urls[1])];
  await client.stop();
  if (here.errors + there.errors > 0 || here.answer.length !== there.answer.length) {
    throw new Error(`the answers of ${method} differ`);
  }
}

const server = await startProgram("identity-server");
const bare = await startProgram("bare-grpc");
const urls = [(await server.call("urls")).grpc, await bare.call("url")];
const rows = {};
const ratios = [];
for (const { name, target, load, scale, seconds = 1, ...call } of cases) {
  await assertSameAnswers(urls, call);
  const loaded = (url) => (time) => grpcLoad({ ...call, url }, load, time);
  const options = { seconds: seconds * SECONDS, scale };
  const { row, ratio } = await compareServers([server, loaded(urls[0])], [bare, loaded(urls[1])], options);
  rows[name] = row;
  ratios.push({ label: name, ...ratio, target });
}
if (hasGrpcCore()) {
  const { path, ...request } = binaryBody("large", [150_000]);
  const { http, grpc } = await server.call("urls");
  const load = { connections: 4, streams: 4 };
  const calls = (time) => grpcCoreLoad({ url: grpc, message: large }, load, time);
  // wrk supports only whole seconds.
  const requests = (time) =>
    httpLoad({ ...request, url: `${http}${path}` }, 16, Math.max(1, Math.round(time)));
  const options = { seconds: 2 * SECONDS };
  const { row } = await compareServers([server, calls], [server, requests], options);
  rows["600 KB from the C++ client, compared with HTTP"] = row;
  const bare = await startProgram("bare-http2");
  const url = await bare.call("url");
  const bareCalls = (time) => grpcCoreLoad({ url, message: large }, load, time);
  const limit = await compareServers([server, calls], [bare, bareCalls], options);
  rows["600 KB from the C++ client, compared with bare node:http2"] = limit.row;
  await bare.stop();
}
await server.stop();
await bare.stop();

report("grpc", {
  rows,
  plots: { "": [drawRatios, "Answers a second over gRPC, compared with a bare echo of grpc-js", ratios] },
  note: `Load from ${grpcLoadTool()}. The server has called [keepHeapRoom](operations.md#large-requests-and-the-heap).`,
});
