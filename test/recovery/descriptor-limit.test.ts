import { execFileSync, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { connect } from "node:net";
import { expect, it, onTestFinished } from "vitest";
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
