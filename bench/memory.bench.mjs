/*
 * Does memory leak? Compares the memory in use after 100 000 requests of a kind with that after a million. Over a
 * network, the run lasts `NETWORK_SECONDS` and is compared with a tenth of that.
 */

import { binaryBody, grpcLoad, httpLoad, inferMessage } from "./support/load.mjs";
import { short } from "./support/pairs.mjs";
import { drawRatios } from "./support/plots.mjs";
import { startProgram } from "./support/program.mjs";
import { report } from "./support/report.mjs";

const REQUESTS = Number(process.env.BENCH_REQUESTS ?? 1_000_000);
const NETWORK_SECONDS = Math.max(4, (REQUESTS / 1_000_000) * 15);
const QUEUED = 100_000;

/**
 * V8 doubles its young generation while a program runs, the last time after 100 000 requests or more. It has its
 * largest size from the start here, so that the resident memory shows what the requests leave.
 */
const nodeOptions = ["--min-semi-space-size=16", "--max-semi-space-size=16"];

const rows = {};
const ratios = [];
const inUse = ({ heapUsed, arrayBuffers }) => heapUsed + arrayBuffers;
const mebibytes = (bytes) => short(bytes / 2 ** 20);

/** @param run runs a share of the program's work; returns the number of requests */
async function grown(name, program, run) {
  const before = await run(0.1);
  const early = await program.call("memory");
  const after = await run(0.9);
  const late = await program.call("memory");
  const ratio = short(inUse(late) / inUse(early));
  rows[name] = {
    requests: Math.round(before + after),
    "MiB early": mebibytes(inUse(early)),
    "MiB late": mebibytes(inUse(late)),
    ratio,
    "RSS early": mebibytes(early.rss),
    "RSS late": mebibytes(late.rss),
    "RSS ratio": short(late.rss / early.rss),
  };
  ratios.push({ label: name, ratio, least: ratio, most: ratio, target: 1.05 });
}

const kinds = await startProgram("memory", { nodeOptions });
for (const kind of await kinds.call("kinds")) {
  const program = await startProgram("memory", { nodeOptions });
  await grown(`in process: ${kind}`, program, async (share) => {
    await program.call("run", kind, REQUESTS * share);
    return REQUESTS * share;
  });
  await program.stop();
}

await kinds.call("run", "batch", 10_000);
const empty = await kinds.call("memory");
await kinds.call("queue", QUEUED);
const full = await kinds.call("memory");
await kinds.call("drain");
const drained = await kinds.call("memory");
await kinds.stop();
const perRequest = Math.round((inUse(full) - inUse(empty)) / QUEUED);
rows[`${QUEUED} queued, and answered`] = {
  requests: QUEUED,
  "MiB early": mebibytes(inUse(empty)),
  "MiB late": mebibytes(inUse(drained)),
  ratio: short(inUse(drained) / inUse(empty)),
};

const server = await startProgram("identity-server", { nodeOptions });
const urls = await server.call("urls");
const small = binaryBody("small", [1, 16]);
const message = await inferMessage("small", 64, true);
const loads = {
  HTTP: (seconds) => httpLoad({ ...small, url: `${urls.http}${small.path}` }, 64, seconds),
  gRPC: (seconds) =>
    grpcLoad(
      { url: urls.grpc, method: "ModelInfer", messages: [message] },
      { connections: 4, streams: 16 },
      seconds,
    ),
};
for (const [name, load] of Object.entries(loads)) {
  await grown(`over ${name}`, server, async (share) => {
    const seconds = Math.ceil(NETWORK_SECONDS * share);
    return (await load(seconds)).rate * seconds;
  });
}
await server.stop();

report("memory", {
  rows,
  figures: { bytesPerQueuedRequest: perRequest },
  plots: {
    "": [drawRatios, "Memory after all requests, compared with that after a tenth of them", ratios],
  },
  note: ({ bytesPerQueuedRequest }) =>
    `A queued request in process, with its input of 64 bytes and its promise, holds ${bytesPerQueuedRequest} bytes.`,
});
