import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { openServer } from "./support/open-server.js";

const CONNECTIONS = 10_000;

/** Opens connections in a process of its own, and reports how many are open and how many have ended. */
const source = `
import { connect } from "node:net";
const [port, count] = process.argv.slice(1).map(Number);
let open = 0, ended = 0;
const next = (started) => {
  if (started >= count) return;
  const socket = connect(port, "localhost", () => {
    open++;
    next(started + 100);
    if (open === count) process.send({ open, ended });
  });
  socket.on("error", () => {}).on("close", () => ended++);
};
for (let first = 0; first < 100; first++) next(first);
process.on("message", () => process.send({ open, ended }));
`;

/** Descriptors that this process may open; undefined where the system does not say. */
async function descriptorLimit(): Promise<number | undefined> {
  if (process.platform !== "linux") return undefined;
  return Number(/^Max open files\s+(\d+)/m.exec(await readFile("/proc/self/limits", "utf8"))?.[1]);
}

const limit = await descriptorLimit();
const isEnough = limit !== undefined && limit > CONNECTIONS + 500;

describe("10,000 idle connections", () => {
  it.runIf(isEnough).each(["httpPort", "grpcPort"] as const)(
    `of one client stay open and hold back no other client: %s${isEnough ? "" : " (skipped: too few descriptors)"}`,
    async (port) => {
      const server = await openServer();
      await server.serves();
      const before = process.memoryUsage().rss;
      const args = ["--input-type=module", "--eval", source, `${server[port]}`, `${CONNECTIONS}`];
      const child = spawn(process.execPath, args, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
      onTestFinished(() => void child.kill());
      const [state] = await once(child, "message");
      expect(state).toEqual({ open: CONNECTIONS, ended: 0 });
      for (let request = 0; request < 10; request++) await server.serves();
      expect((process.memoryUsage().rss - before) / CONNECTIONS).toBeLessThan(100_000);
      child.kill();
      await once(child, "close");
      await server.serves();
    },
  );
});
