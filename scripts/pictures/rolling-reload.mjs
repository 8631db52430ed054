import { channel } from "node:diagnostics_channel";
import { EventEmitter, once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import { repository } from "@tritonjs/repository";
import { VirtualClock } from "@tritonjs/testing";
import { bar, drawing, label, timeAxis } from "./drawing.mjs";

const [LOAD_MS, RUN_MS, EVERY_MS, RELOAD_AT, END_MS] = [12, 5, 4, 10, 44];
const ROLES = { 1: "one", 2: "two" };
const CONFIG = `backend: "timed"
input [ { name: "x" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_INT32 dims: [ 1 ] } ]
instance_group [ { count: 2 kind: KIND_CPU } ]
version_policy { latest { num_versions: 1 } }
`;

/** Backend of instances that take time on a virtual clock. It records what they do, by version. */
function timedBackend(clock, versions, onStart) {
  return ({ version }) => ({
    backendName: "timed",
    platform: "",
    describe: () => undefined,
    createExecutor: () => ({
      details: {},
      mustFinish: false,
      start: () => {
        if (!versions.has(version)) versions.set(version, { loads: clock.now(), runs: [] });
        onStart(version);
        return new Promise((resolve) => clock.setTimer(LOAD_MS, resolve));
      },
      stop: async () => {
        versions.get(version).stopped = clock.now();
      },
      execute: ({ requests }) => {
        versions.get(version).runs.push({ begin: clock.now(), end: clock.now() + RUN_MS });
        const results = requests.map(({ inputs }) => new Map([["y", inputs.get("x")]]));
        return new Promise((resolve) => clock.setTimer(RUN_MS, () => resolve(results)));
      },
    }),
  });
}

/** Gives a model a new version under load, on a virtual clock. Returns what each version did. */
async function runReload() {
  const clock = new VirtualClock();
  const folder = mkdtempSync(join(tmpdir(), "tritonjs-picture-"));
  const versions = new Map();
  const events = new EventEmitter();
  const addVersion = (version) => mkdirSync(join(folder, "m", version), { recursive: true });
  const onState = ({ version, state }) => events.emit(`${version} ${state}`);
  channel("tritonjs:model:state").subscribe(onState);
  try {
    addVersion("1");
    writeFileSync(join(folder, "m", "config.pbtxt"), CONFIG);
    const timed = timedBackend(clock, versions, (version) => events.emit(`${version} starts`));
    const triton = new Triton({
      clock,
      logInfo: false,
      extensions: [
        repository({ modelRepository: folder, modelControlMode: "explicit", backends: { timed } }),
      ],
    });
    const load = async (version) => {
      const starts = once(events, `${version} starts`);
      const loaded = triton.loadModel("m");
      await starts;
      return { loaded };
    };
    const { loaded } = await load("1");
    await clock.advance(LOAD_MS);
    await loaded;
    const from = clock.now();
    const answers = [];
    let reload;
    for (let ms = 0; ms < END_MS; ms++) {
      if (ms % EVERY_MS === 0) answers.push(triton.infer("m", { x: [1] }));
      if (ms === RELOAD_AT) {
        addVersion("2");
        reload = await load("2");
      }
      const isReady = ms + 1 === RELOAD_AT + LOAD_MS && once(events, "2 READY");
      await clock.advance(1);
      // Files are read in real time, while the virtual clock stands still.
      if (isReady) await isReady;
    }
    await clock.advance(100);
    await Promise.all([...answers, reload.loaded]);
    await triton.close();
    return { from, versions };
  } finally {
    channel("tritonjs:model:state").unsubscribe(onState);
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A reload under load: computed by the library's own repository. */
export async function drawRollingReload() {
  const { from, versions } = await runReload();
  const { x, parts } = timeAxis({ left: 110, right: 800, top: 46, bottom: 228, endMs: END_MS, stepMs: 5 });
  const title = "A new version loads while the old one serves; two instances each";
  parts.push(label(12, 24, title, { "font-weight": "bold" }));
  for (const [version, { loads, stopped, runs }] of versions) {
    const y = 58 + (version - 1) * 86;
    const [begin, end] = [Math.max(0, loads - from), Math.min(END_MS, (stopped ?? from + END_MS) - from)];
    parts.push(label(102, y + 34, `version ${version}`, { anchor: "end" }));
    parts.push(...bar(x(begin), y, x(end) - x(begin), 60, "", "rule"));
    if (loads >= from) {
      const ready = begin + LOAD_MS;
      parts.push(label((x(begin) + x(ready)) / 2, y + 34, "loads", { anchor: "middle" }));
    }
    const lanes = [];
    for (const run of runs.filter((one) => one.begin - from < END_MS)) {
      const free = lanes.findIndex((until) => until <= run.begin);
      const lane = free === -1 ? lanes.length : free;
      lanes[lane] = run.end;
      const left = x(run.begin - from);
      const right = x(Math.min(END_MS, run.end - from));
      parts.push(...bar(left, y + 5 + lane * 26, right - left - 1, 22, "", ROLES[version]));
    }
  }
  return drawing(
    820,
    260,
    "The requests that each of two versions of a model answers during a reload",
    parts,
  );
}
