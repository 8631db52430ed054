/*
 * What does a viewer of the dashboard cost? The same server runs the same load with a viewer and without one, in turns.
 * The viewer is in this process. It reads the event stream of the model, as the page does.
 */
import { binaryBody, httpLoad, httpLoadTool } from "./support/load.mjs";
import { medianOf, ratioOf, runPairs, SECONDS } from "./support/pairs.mjs";
import { startProgram } from "./support/program.mjs";
import { report } from "./support/report.mjs";

const TARGET = 1.01;

/** Time before each measurement: the dashboard has looked at the server, and the changed code is compiled. */
const SETTLE_SECONDS = 2;

const IDLE_SECONDS = 20;

const server = await startProgram("watched-server");
const url = await server.call("url");

/** Opens a viewer, and resolves when it has got its first look at the server. */
async function openViewer() {
  const left = new AbortController();
  const { body } = await fetch(`${url}/dashboard/api/events/small/1`, { signal: left.signal });
  const reader = body.getReader();
  await reader.read();
  const read = async () => {
    while (!(await reader.read()).done);
  };
  void read().catch(() => {});
  return () => left.abort();
}

const inProcess = (seconds) => server.call("run", 64, seconds);

const { path, headers, body } = binaryBody("small", [1, 16]);
async function overHttp(wanted) {
  // wrk supports only whole seconds.
  const seconds = Math.max(1, Math.round(wanted));
  await server.call("use");
  const { rate } = await httpLoad({ url: `${url}${path}`, headers, body }, 64, seconds);
  const { cpuMs } = await server.call("use");
  return { rate, cpuMicroseconds: (cpuMs * 1000) / (rate * seconds) };
}

const measured = (load, open) => async () => {
  const leave = await open();
  try {
    await load(SETTLE_SECONDS);
    return await load(SECONDS);
  } finally {
    leave();
  }
};

const noViewer = async () => () => {};

const cpu = ({ cpuMicroseconds }) => cpuMicroseconds;
const rows = {};
for (const [name, load] of Object.entries({ "in process, 64": inProcess, "HTTP, 64 B, 64": overHttp })) {
  const runs = await runPairs(measured(load, openViewer), measured(load, noViewer));
  const { ratios: _, ...ratio } = ratioOf(runs, cpu);
  rows[name] = {
    "CPU µs watched": medianOf(runs.ours, cpu),
    "CPU µs unwatched": medianOf(runs.reference, cpu),
    ...ratio,
    target: TARGET,
  };
}
/** CPU time that one viewer takes of a server without other work. It is exact on a busy machine too. */
async function cpuOfIdle(open) {
  const leave = await open();
  await server.call("use");
  await new Promise((resolve) => setTimeout(resolve, IDLE_SECONDS * 1000));
  const { cpuMs } = await server.call("use");
  leave();
  return cpuMs / IDLE_SECONDS;
}

const idle = { watched: await cpuOfIdle(openViewer), unwatched: await cpuOfIdle(noViewer) };
await server.stop();
const perSecond = (ms) => `${ms.toFixed(2)} ms of CPU time a second`;
const note =
  `A server without requests takes ${perSecond(idle.watched)} with a viewer, and ${perSecond(idle.unwatched)} without. ` +
  `Load over HTTP from ${httpLoadTool()}.`;
report("dashboard", { rows, document: "dashboard.md", note });
