/*
 * How long does a health probe wait while 64 clients send requests that are cheap to send and dear to read? Shows the
 * CPU time of the server for each request, its longest turn of the event loop, and its largest memory. Arguments choose
 * the attacks whose name contains them; `SERVER_OPTIONS` are options of Node for the server.
 */
import { once } from "node:events";
import { Agent, request as post } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { startProgram } from "./support/program.mjs";
import { saveResult } from "./support/report.mjs";

const CLIENTS = 64;
const ROUNDS = Number(process.env.ROUNDS ?? 2);
const MEBIBYTE = 2 ** 20;
const JSON_BYTES = 7 * MEBIBYTE;
const HALF_OPEN = Number(process.env.HALF_OPEN ?? 7000);

const repeat = (piece, bytes = JSON_BYTES) => piece.repeat(Math.floor(bytes / piece.length));
/** A request to a model whose `data` is a piece of JSON again and again. */
const infer = (model, datatype, piece, count = JSON_BYTES / piece.length) => ({
  path: `/v2/models/${model}/infer`,
  body:
    `{"inputs":[{"name":"x","datatype":"${datatype}","shape":[${Math.floor(count)}],` +
    `"data":[${repeat(piece).slice(0, -1)}]}]}`,
});
const digitKeys = Array.from({ length: 200_000 }, (_, index) => `"${index}":1`).join(",");

const bodies = {
  "small objects": {
    path: "/v2/models/numbers/infer",
    body: `{"inputs":[${repeat('{"a":1},').slice(0, -1)}]}`,
  },
  "empty arrays": { path: "/v2/models/numbers/infer", body: `{"inputs":[${repeat("[],").slice(0, -1)}]}` },
  "strings for BYTES": infer("texts", "BYTES", '"a",'),
  "strings for FP32": infer("numbers", "FP32", '"a",'),
  "strings behind a null": infer("texts", "BYTES", '"a",').body.replace('[{"name"', '[null,{"name"'),
  "mixed strings": {
    ...infer("texts", "BYTES", '"a",'),
    body: infer("texts", "BYTES", '"a",').body.replace('"data":[', '"data":[null,'),
  },
  "numbers for FP32": infer("numbers", "FP32", "1,"),
  "numbers for BYTES": infer("texts", "BYTES", "1,"),
  "exponents for FP32": infer("numbers", "FP32", "1e1,"),
  "fractions for INT64": infer("integers", "INT64", "0.5,"),
  "large integers for INT64": infer("integers", "INT64", "9007199254740993,"),
  "booleans for BOOL": infer("booleans", "BOOL", "true,"),
  "200,000 digit keys": {
    path: "/v2/models/numbers/infer",
    body: `{"parameters":{${digitKeys}},"inputs":[]}`,
  },
  "200,000 digit keys to generate": {
    path: "/v2/models/numbers/generate",
    body: `{${digitKeys}}`,
    plain: true,
  },
  "a long shape": {
    path: "/v2/models/numbers/infer",
    body: `{"inputs":[{"name":"x","datatype":"FP32","shape":[${repeat("1,").slice(0, -1)}],"data":[1]}]}`,
  },
};
bodies["strings behind a null"] = { path: "/v2/models/texts/infer", body: bodies["strings behind a null"] };

function sendJson(url, { path, body, plain }) {
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
  const bytes = plain ? Buffer.from(body) : gzipSync(body);
  const answers = new Map();
  const one = () =>
    new Promise((resolve, reject) => {
      const headers = { "content-length": bytes.length, ...(plain ? {} : { "content-encoding": "gzip" }) };
      const sent = post(`${url}${path}`, { method: "POST", agent, headers }, (answer) => {
        let text = "";
        answer.setEncoding("latin1").on("data", (part) => {
          if (text.length < 200) text += part;
        });
        answer.on("end", () => {
          const key = `${answer.statusCode} ${text.slice(0, 90)}`;
          answers.set(key, (answers.get(key) ?? 0) + 1);
          resolve();
        });
      });
      sent.on("error", reject).end(bytes);
    });
  const client = async () => {
    for (let round = 0; round < ROUNDS; round++) await one();
  };
  return Promise.all(Array.from({ length: CLIENTS }, client)).then(() => {
    agent.destroy();
    return { requests: CLIENTS * ROUNDS, answers };
  });
}

/** ModelInfer with an input of 7 million dimensions, or of other parts. */
function grpcMessage(field, bytes) {
  const varint = (value) => {
    const out = [];
    for (; value > 127; value = Math.floor(value / 128)) out.push((value % 128) | 128);
    return Buffer.from([...out, value]);
  };
  const delimited = (number, content) =>
    Buffer.concat([Buffer.of((number << 3) | 2), varint(content.length), content]);
  const input = Buffer.concat([
    delimited(1, Buffer.from("x")),
    delimited(2, Buffer.from("FP32")),
    field(delimited, bytes),
  ]);
  const message = gzipSync(Buffer.concat([delimited(1, Buffer.from("numbers")), delimited(5, input)]));
  const head = Buffer.alloc(5);
  head[0] = 1;
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

const messages = {
  "gRPC: 7 million dimensions": grpcMessage(
    (delimited, bytes) => delimited(3, Buffer.alloc(bytes, 1)),
    JSON_BYTES,
  ),
  "gRPC: 3.5 million unpacked dimensions": grpcMessage(
    (_, bytes) => Buffer.alloc(bytes, Buffer.of(3 << 3, 1)),
    JSON_BYTES,
  ),
  "gRPC: 2 million strings": grpcMessage(
    (delimited) => delimited(5, Buffer.alloc(3 * 2 ** 21, Buffer.of((8 << 3) | 2, 1, 97))),
    JSON_BYTES,
  ),
};

async function sendGrpc(url, message) {
  const answers = new Map();
  const sessions = Array.from({ length: 8 }, () => connectHttp2(url));
  const one = (session) =>
    new Promise((resolve, reject) => {
      const stream = session.request({
        ":method": "POST",
        ":path": "/inference.GRPCInferenceService/ModelInfer",
        "content-type": "application/grpc",
        "grpc-encoding": "gzip",
        te: "trailers",
      });
      const note = (headers) => {
        if (headers["grpc-status"] === undefined) return;
        const key = `${headers["grpc-status"]} ${decodeURI(headers["grpc-message"] ?? "").slice(0, 90)}`;
        answers.set(key, (answers.get(key) ?? 0) + 1);
      };
      stream.on("response", note).on("trailers", note).on("error", reject).on("close", resolve).resume();
      stream.end(message);
    });
  const client = async (session) => {
    for (let round = 0; round < ROUNDS; round++) await one(session);
  };
  await Promise.all(Array.from({ length: CLIENTS }, (_, index) => client(sessions[index % 8])));
  for (const session of sessions) session.destroy();
  return { requests: CLIENTS * ROUNDS, answers };
}

/** Sends the first byte of many declared bodies. */
async function sendHalfOpen(url) {
  const { hostname, port } = new URL(url);
  const head = `POST /v2/models/numbers/infer HTTP/1.1\r\nHost: x\r\nContent-Length: ${MEBIBYTE}\r\n\r\n{`;
  const sockets = [];
  for (let from = 0; from < HALF_OPEN; from += 100) {
    const some = Array.from({ length: Math.min(100, HALF_OPEN - from) }, () => connect(port, hostname));
    await Promise.all(some.map((socket) => once(socket, "connect")));
    for (const socket of some) socket.on("error", () => {}).write(head);
    sockets.push(...some);
  }
  return {
    requests: HALF_OPEN,
    answers: new Map(),
    end: () => {
      for (const socket of sockets) socket.destroy();
    },
  };
}

const only = process.argv.slice(2).join(" ");
const attacks = {
  ...Object.fromEntries(
    Object.entries(bodies).map(([name, body]) => [name, ({ http }) => sendJson(http, body)]),
  ),
  ...Object.fromEntries(
    Object.entries(messages).map(([name, message]) => [name, ({ grpc }) => sendGrpc(grpc, message)]),
  ),
  "half-open bodies": ({ http }) => sendHalfOpen(http),
};
const rows = {};
for (const [name, attack] of Object.entries(attacks)) {
  if (!name.includes(only)) continue;
  const server = await startProgram("hostile-server", {
    nodeOptions: process.env.SERVER_OPTIONS?.split(" "),
  });
  const probe = await startProgram("health-probe");
  const urls = await server.call("urls");
  await probe.call("start", `${urls.http}/v2/health/live`);
  await server.call("use");
  await server.call("turns");
  let rss = 0;
  const sampling = setInterval(async () => {
    rss = Math.max(rss, await server.call("rss").catch(() => 0));
  }, 100);
  try {
    const { requests, answers, end } = await attack(urls);
    await server.call("ready");
    const { cpuMs } = await server.call("use");
    const turns = await server.call("turns");
    rows[name] = {
      "CPU ms a request": Math.round((cpuMs / requests) * 100) / 100,
      "health p99 ms": Math.round(await probe.call("stop")),
      "longest turn ms": Math.round(turns.longest),
      "most MB": Math.round(rss / 1e6),
    };
    end?.();
    console.log(name, rows[name], answers);
  } catch (error) {
    console.log(name, String(error));
  }
  clearInterval(sampling);
  await Promise.all([server, probe].map((program) => program.stop()));
}
console.table(rows);
if (only === "") saveResult("hostile-requests", rows);
