import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { VirtualClock } from "@tritonjs/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { outcomeOf } from "../../../../test/support/outcome.js";
import { Program } from "../../../../test/support/program.js";
import { hasPython, withoutPython } from "../../../../test/support/python.js";
import { repositoryRoot } from "../../../../test/support/repository.js";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";
import { ProcessConnections } from "./line-to-models.js";
import { FLOATS, modelClass, type PythonModel, PythonServer, pythonFiles } from "./python-server.js";

const program = fileURLToPath(
  new URL("../../../core/test/behaviours/fixtures/serves-python.mjs", import.meta.url),
);

/** A model whose process, and all processes that it starts, keep the connection open. */
function holding(line: ProcessConnections, methods: string): PythonModel {
  return {
    config: `${FLOATS}\nparameters [ { key: "line" value { string_value: "${line.path}" } } ]`,
    code: modelClass(`def initialize(self, args):
    import socket
    path = json.loads(args["model_config"])["parameters"]["line"]["string_value"]
    self.line = socket.socket(socket.AF_UNIX)
    self.line.connect(path)
    self.prepare()
def prepare(self):
    pass
def execute(self, requests):
    while x_of(requests[0])[0] < 0:
        pass
    if x_of(requests[0])[0] > 100:
        sum(range(1 << 62))
    return [y(x_of(request)) for request in requests]
${methods}`),
  };
}

const models = (line: ProcessConnections) => ({
  plain: holding(line, ""),
  ignores_signals: holding(
    line,
    "def prepare(self):\n    for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):\n        signal.signal(one, signal.SIG_IGN)",
  ),
  forks: holding(
    line,
    "def prepare(self):\n    if os.fork() == 0:\n        while True:\n            time.sleep(100)",
  ),
  starts_programs: holding(
    line,
    'def prepare(self):\n    import subprocess\n    subprocess.Popen(["sleep", "1000"], pass_fds=[self.line.fileno()])',
  ),
  has_threads: holding(
    line,
    "def prepare(self):\n    threading.Thread(target=time.sleep, args=(1000,)).start()",
  ),
  hangs_in_finalize: holding(line, "def finalize(self):\n    while True:\n        time.sleep(100)"),
});

describe.skipIf(!hasPython)(`processes of Python models${withoutPython}`, () => {
  let line: ProcessConnections;
  beforeEach(async () => {
    line = await ProcessConnections.open();
  });
  afterEach(() => line.close());

  it("end with close(), whatever they do", async () => {
    const all = models(line);
    const { hangs_in_finalize: _, has_threads: __, ...quick } = all;
    const server = await PythonServer.start(quick);
    await line.connected(Object.keys(quick).length);
    await server[Symbol.asyncDispose]();
    await line.allGone();
  });

  it("are ended when they do not finalize in time", async () => {
    const slow = { hangs_in_finalize: models(line).hangs_in_finalize, has_threads: models(line).has_threads };
    const clock = new VirtualClock();
    const server = await PythonServer.start(slow, { clock, exitTimeoutSecs: 3600 });
    let closed = false;
    const closing = server[Symbol.asyncDispose]().then(() => {
      closed = true;
    });
    while (!closed) {
      await clock.advance(1000);
      await new Promise(setImmediate);
    }
    await closing;
    await line.allGone();
    expect(server.lines).toContain(
      "model 'hangs_in_finalize' was ended: finalize() did not return within 600 s",
    );
  });

  it("are ended in the middle of a batch when the exit timeout passes", async () => {
    const server = await PythonServer.start({ plain: models(line).plain }, { exitTimeoutSecs: 0.1 });
    const outcome = outcomeOf(server.ask("plain", -1));
    await server[Symbol.asyncDispose]();
    await line.allGone();
    expect(await outcome).not.toBe("done");
  });

  it.each(["idle", "loop", "native loop"])("end when their server is killed: %s", async (what) => {
    await using repository = await RepositoryOnDisk.create(pythonFiles(models(line)));
    const server = Program.node(program, [repository.path, what], repositoryRoot);
    await server.untilOutput("serving");
    server.signal("SIGKILL");
    await server.ended;
    await line.allGone();
  });

  it("end when their server exits without closing", async () => {
    await using repository = await RepositoryOnDisk.create(pythonFiles(models(line)));
    await Program.node(program, [repository.path, "exit"], repositoryRoot).ended;
    await line.connected(1);
    await line.allGone();
  });
});

const DIED = "INTERNAL Stub process 'busy_0' is not healthy. It was ended by SIGKILL.";

describe.skipIf(!hasPython)(`a Python model that is killed under load${withoutPython}`, () => {
  it("answers every request or fails it, and restarts", async () => {
    const code = modelClass(`def execute(self, requests):
    return [y(os.getpid()) for request in requests]`);
    await using server = await PythonServer.start({ busy: { code } });
    const outcomes: string[] = [];
    for (let round = 0; round < 3; round++) {
      const [pid] = await server.ask("busy", 0);
      const asked = Array.from({ length: 20 }, () => outcomeOf(server.ask("busy", 0)));
      process.kill(pid!, "SIGKILL");
      outcomes.push(...(await Promise.all(asked)));
      expect(await outcomeOf(server.ask("busy", 0))).toBe("done");
    }
    expect(outcomes).toHaveLength(60);
    const failed = outcomes.filter((outcome) => outcome !== "done");
    expect(new Set([...failed, DIED])).toEqual(new Set([DIED]));
  });
});

const isLinux = process.platform === "linux";
const unbound = isLinux ? withoutPython : " (skipped: only Linux binds threads to cores)";

it.skipIf(!hasPython || !isLinux)(
  `a host policy places all threads of a Python process${unbound}`,
  async () => {
    const cores = (of: number | "self") =>
      readdirSync(`/proc/${of}/task`).map(
        (thread) =>
          /^Cpus_allowed_list:\s*(.+)$/m.exec(readFileSync(`/proc/${of}/task/${thread}/status`, "utf8"))![1]!,
      );
    const core = cores("self")[0]!.match(/\d+/g)!.at(-1)!;
    const code = modelClass(`def execute(self, requests):
    return [y(os.getpid()) for request in requests]`);
    const hostPolicies = { cpu: { cpuCores: `${core}-${core}`, numaNode: "0" } };
    await using server = await PythonServer.start({ bound: { code } }, { hostPolicies });
    const [pid] = await server.ask("bound", 0);
    expect(new Set(cores(pid!))).toEqual(new Set([core]));
  },
);
