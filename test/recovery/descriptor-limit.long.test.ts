import { execFileSync, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { Agent, get } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { expect, it, onTestFinished } from "vitest";
import { Events } from "../../packages/http/test/dashboard/support/events.js";
import { hasPython, withoutPython } from "../support/python.js";
import {
  ask,
  clientOf,
  DOUBLE,
  IN_A_PROCESS,
  javascript,
  python,
  repositoryWith,
  startServer,
} from "./served-repository.js";

/** Linux's program that changes the limits of a running process. */
const hasPrlimit = spawnSync("prlimit", ["--version"]).status === 0;
const note = hasPrlimit ? "" : " (skipped: there is no prlimit)";

const PYTHON_DOUBLE = `
import os
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        def answer(request):
            x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
            if x[0] == -1:
                os._exit(70)
            return pb_utils.InferenceResponse([pb_utils.Tensor("y", x * 2)])
        return [answer(request) for request in requests]
`;

const descriptorsOf = (pid: number) => readdirSync(`/proc/${pid}/fd`).length;

/** Number of open pipes to child processes. They are Unix sockets. */
function pipesOf(pid: number): number {
  const names = new Set(
    readFileSync(`/proc/${pid}/net/unix`, "utf8")
      .split("\n")
      .map((line) => `socket:[${line.trim().split(/\s+/)[6]}]`),
  );
  return readdirSync(`/proc/${pid}/fd`).filter((name) => names.has(linkOf(`/proc/${pid}/fd/${name}`))).length;
}

function eventLoopsOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).filter((name) =>
    linkOf(`/proc/${pid}/fd/${name}`).includes("eventpoll"),
  ).length;
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    // Closed since the listing.
    return "";
  }
}

/** Limits the open files of a running process. */
function permit(pid: number, count: number): void {
  execFileSync("prlimit", ["--pid", String(pid), `--nofile=${count}:`]);
}

it.skipIf(!hasPrlimit)(
  `a server without free descriptors answers on its connections, and accepts new ones once it has some${note}`,
  async () => {
    const path = await repositoryWith({
      "double/config.pbtxt": javascript(""),
      "double/1/model.js": DOUBLE,
    });
    const { client, program, address } = await startServer(path);
    expect(await ask(client, "double", 1)).toBe(2);
    permit(program.pid!, descriptorsOf(program.pid!) + 5);
    const [host, port] = address.split(":");
    const sockets = Array.from({ length: 50 }, () => connect(Number(port), host).on("error", () => {}));
    onTestFinished(() => sockets.forEach((socket) => void socket.destroy()));
    await Promise.all(
      sockets.map((socket) => Promise.race([once(socket, "connect"), once(socket, "close")])),
    );
    expect(await ask(client, "double", 2)).toBe(4);
    for (const socket of sockets) socket.destroy();
    await expect.poll(() => ask(clientOf(address), "double", 3).catch(String)).toBe(6);
  },
);

it.skipIf(!hasPrlimit || !hasPython)(
  `instances that die while no descriptor is free restart once there are some${note}${withoutPython}`,
  async () => {
    const path = await repositoryWith({
      "thread/config.pbtxt": javascript(""),
      "thread/1/model.js": DOUBLE,
      "process/config.pbtxt": javascript(IN_A_PROCESS),
      "process/1/model.js": DOUBLE,
      "python/config.pbtxt": python,
      "python/1/model.py": PYTHON_DOUBLE,
    });
    const { client, program } = await startServer(path);
    const models = ["thread", "process", "python"];
    for (const model of models) expect(await ask(client, model, 1)).toBe(2);
    // Far fewer than it has, because the instances that end give descriptors back.
    permit(program.pid!, Math.floor(descriptorsOf(program.pid!) / 2));
    for (const model of models) await expect(ask(client, model, -1)).rejects.toThrow(/crashed|not healthy/);
    await program.untilOutput("could not be restarted", "stderr");
    permit(program.pid!, 4096);
    for (const model of models) await expect.poll(() => ask(client, model, 3).catch(String)).toBe(6);
  },
);

it.skipIf(!hasPrlimit || !hasPython)(
  `a process that the last free descriptors cannot start leaves no pipe open${note}${withoutPython}`,
  async () => {
    const path = await repositoryWith({ "python/config.pbtxt": python, "python/1/model.py": PYTHON_DOUBLE });
    const { client, program } = await startServer(path);
    expect(await ask(client, "python", 1)).toBe(2);
    const failedRestarts = async () =>
      (await program.untilOutput("", "stderr")).split("could not be restarted").length;
    const before = pipesOf(program.pid!);
    // With those of the dead process, this is enough for the pipes of the next one, and not for its start.
    for (const free of [2, 3]) {
      const failed = await failedRestarts();
      permit(program.pid!, descriptorsOf(program.pid!) + free);
      await expect(ask(client, "python", -1)).rejects.toThrow("not healthy");
      await expect.poll(failedRestarts).toBeGreaterThan(failed);
      permit(program.pid!, 4096);
      await expect.poll(() => ask(client, "python", 3).catch(String)).toBe(6);
    }
    await expect.poll(() => pipesOf(program.pid!)).toBeLessThanOrEqual(before);
  },
);

it.skipIf(!hasPrlimit)(
  `a thread that the last free descriptors cannot start leaves no event loop open${note}`,
  async () => {
    const path = await repositoryWith({
      "double/config.pbtxt": javascript(""),
      "double/1/model.js": DOUBLE,
    });
    const { client, program } = await startServer(path);
    expect(await ask(client, "double", 1)).toBe(2);
    const before = eventLoopsOf(program.pid!);
    const restarts = async () =>
      (await program.untilOutput("", "stderr")).split(/could not be restarted|has restarted/).length;
    // The thread that ends gives some back, of which the next one needs a part.
    for (let fewer = 8; fewer < 17; fewer++) {
      const earlier = await restarts();
      permit(program.pid!, descriptorsOf(program.pid!) - fewer);
      const crash = async () => {
        // Without a free descriptor, a new connection of the client is closed.
        await ask(client, "double", -1).catch(() => {});
        return restarts();
      };
      await expect.poll(crash).toBeGreaterThan(earlier);
      permit(program.pid!, 4096);
      await expect.poll(() => ask(client, "double", 3).catch(String)).toBe(6);
    }
    await expect.poll(() => eventLoopsOf(program.pid!)).toBeLessThanOrEqual(before);
  },
);

it.skipIf(!hasPrlimit)(
  `a server without free descriptors goes on with its dashboard and its metrics on open connections${note}`,
  async () => {
    const path = await repositoryWith({
      "double/config.pbtxt": javascript(""),
      "double/1/model.js": DOUBLE,
    });
    const { program } = await startServer(path, "--dashboard");
    const log = await program.untilOutput("Started Metrics Service", "stderr");
    const [, address] = /Started Metrics Service at ([\d.]+:\d+)/.exec(log)!;
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    const metrics = () => textOf(`http://${address}/metrics`, agent);
    const events = await Events.open(`http://${address}/dashboard/api/events`);
    await events.next("summary");
    expect(await metrics()).toContain("process_resident_memory_bytes");
    permit(program.pid!, 3);
    await events.next("summary");
    await events.next("summary");
    expect(await metrics()).toMatch(/^process_resident_memory_bytes [1-9]\d+$/m);
  },
);

/** The body of an answer on a connection of the agent. */
function textOf(url: string, agent: Agent): Promise<string> {
  return new Promise((resolve, reject) => {
    get(url, { agent }, (answer) => resolve(text(answer))).on("error", reject);
  });
}
