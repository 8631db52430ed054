import { WrongAnswer } from "../oracle/journal.mjs";
import { CRASH, EXHAUST } from "../repository/models.mjs";

/* Instances of models that die: their processes are killed, and requests end or exhaust their workers. */

/** Kills the process of an instance. Its restart is awaited, so no instance is killed while it loads. */
const killProcess = (server) => ({
  name: "model process killed",
  needs: [`instances of ${server}`],
  async run({ servers, random, log }) {
    const one = servers[server];
    const pids = one.modelProcesses();
    if (pids.length === 0) return;
    const before = one.restarts;
    const pid = random.pick(pids);
    log.note(this.name, { server, detail: `pid ${pid}` });
    process.kill(pid, "SIGKILL");
    await one.restarted(before);
  },
});

/** Kills a process that protects the server from orphans. Its model keeps working. */
const killGuardian = {
  name: "guardian of a Python model killed",
  needs: ["instances of serve"],
  async run({ servers, random, log }) {
    const pids = servers.serve.guardians();
    if (pids.length === 0) return;
    const pid = random.pick(pids);
    log.note(this.name, { server: "serve", detail: `pid ${pid}` });
    process.kill(pid, "SIGKILL");
  },
};

const poison = (name, server, model, value) => ({
  name,
  needs: [`instances of ${server}`],
  async run({ servers, clients, journal, log }) {
    const before = servers[server].restarts;
    log.note(name, { server, model });
    await journal.record({ protocol: "crashing requests", server, model }, async () => {
      const inputs = { x: { datatype: "FP32", shape: [1, 1], data: Float32Array.of(value) } };
      await clients[server].http.infer(model, { inputs });
      throw new WrongAnswer("expected the worker to die, got an answer");
    });
    await servers[server].restarted(before);
  },
});

export const instanceEvents = [
  killProcess("serve"),
  killProcess("serve"),
  killProcess("program"),
  killGuardian,
  poison("worker thread ended", "serve", "js_thread", CRASH),
  poison("worker thread ended", "program", "thread", CRASH),
  poison("worker thread exhausted its heap", "serve", "js_limited", EXHAUST),
];
