import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { checkMultiples, row } from "../load/values.mjs";
import { descriptorCount } from "../servers/processes.mjs";

/* Faults of the machine: time, memory, processes that stand still, and many connections at once. */

const suspended = (server) => ({
  name: "server suspended",
  needs: [`run of ${server}`],
  async run({ servers, random, log }) {
    const event = log.begin(this.name, { server });
    servers[server].signal("SIGSTOP");
    await sleep(random.between(300, 3000));
    servers[server].signal("SIGCONT");
    log.end(event);
  },
});

/** Sets the wall clock of both servers forward and back by up to a day. */
const clockJumps = {
  name: "clock jumps",
  needs: ["clock"],
  async run({ clockFile, random, log }) {
    const seconds = random.between(-86_400, 86_400);
    const event = log.begin(this.name, { detail: `${seconds} s` });
    setClock(clockFile, seconds);
    // libfaketime reads the file once a second.
    await sleep(random.between(1500, 4000));
    setClock(clockFile, 0);
    log.end(event);
  },
};

/** Writes the offset of the wall clock for libfaketime. */
export function setClock(clockFile, seconds) {
  writeFileSync(clockFile, `${seconds < 0 ? "" : "+"}${seconds}\n`);
}

/** Another process takes memory and writes to all of it. */
const balloon = {
  name: "memory taken by another process",
  needs: ["balloon"],
  async run({ random, log }) {
    const megabytes = random.between(256, 768);
    const event = log.begin(this.name, { detail: `${megabytes} MiB` });
    const program = `Buffer.alloc(${megabytes} * 2 ** 20, 1); setTimeout(() => {}, ${random.between(300, 1500)})`;
    await once(spawn(process.execPath, ["-e", program], { stdio: "ignore" }), "exit");
    log.end(event);
  },
};

/** More bytes of requests at once than the server may hold. Some are refused. */
const flood = {
  name: "flood of large requests",
  needs: ["flood"],
  async run({ clients, random, journal, log }) {
    const event = log.begin(this.name, { server: "serve" });
    const x = row(random, 250_000);
    const inputs = { x: { datatype: "FP32", shape: [1, x.length], data: x } };
    const send = () =>
      journal.record({ protocol: "HTTP flood", server: "serve", model: "js_thread" }, async () => {
        const result = await clients.serve.http.infer("js_thread", { inputs });
        checkMultiples(x, 2, result.elements("y", "FP32"), "output y");
      });
    await Promise.all(Array.from({ length: 24 }, send));
    log.end(event);
  },
};

/** Connections that send a part of a request, or nothing, and are cut. */
const connectionsCut = (server) => ({
  name: "connections cut",
  needs: [`connections to ${server}`],
  async run({ clients, random, log }) {
    const event = log.begin(this.name, { server });
    const addresses = [clients[server].httpAddress, clients[server].grpcAddress];
    const sockets = Array.from({ length: 40 }, () => {
      const [host, port] = random.pick(addresses).split(":");
      const socket = connect(Number(port), host);
      socket.on("error", () => {});
      const bytes = random.pick([
        "",
        "GET /v2",
        "POST /v2/models/js_thread/infer HTTP/1.1\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      ]);
      socket.write(bytes);
      return socket;
    });
    await sleep(random.between(0, 500));
    for (const socket of sockets) socket.resetAndDestroy();
    log.end(event);
  },
});

/** The server has as many open files as it may have. It can accept no connection and start no instance. */
const noDescriptor = {
  name: "no descriptor free",
  needs: ["limits", "instances of serve", "repository", "connections to serve", "flood", "run of serve"],
  async run({ clients, servers, random, log }) {
    const { serve } = servers;
    const event = log.begin(this.name, { server: "serve" });
    const before = serve.restarts;
    permit(serve.pid, descriptorCount(serve.pid));
    const [host, port] = clients.serve.httpAddress.split(":");
    const sockets = Array.from({ length: 20 }, () => connect(Number(port), host).on("error", () => {}));
    const pids = serve.modelProcesses();
    if (pids.length > 0) {
      log.note("model process killed", { server: "serve" });
      process.kill(random.pick(pids), "SIGKILL");
    }
    await sleep(random.between(500, 2000));
    permit(serve.pid, MOST_DESCRIPTORS);
    for (const socket of sockets) socket.destroy();
    if (pids.length > 0) await serve.restarted(before);
    log.end(event);
  },
};

/** Enough for every connection of the run. */
const MOST_DESCRIPTORS = 4096;

function permit(pid, count) {
  execFileSync("prlimit", ["--pid", String(pid), `--nofile=${count}:`]);
}

export const machineEvents = [
  noDescriptor,
  suspended("serve"),
  suspended("program"),
  clockJumps,
  balloon,
  flood,
  connectionsCut("serve"),
  connectionsCut("program"),
];
