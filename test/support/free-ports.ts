import { once } from "node:events";
import { mkdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KEPT } from "./temporary-folder.js";

/** Ports that the system gives to programs which choose none begin here. */
const EPHEMERAL = firstEphemeralPort();
const FIRST = 10_000;

/**
 * Free ports of this machine, for programs that have to be told theirs, or that listen on the same port again. They lie
 * below the ports that the system hands out, and no test of the run gets a port twice. So they stay free until the
 * program listens, and while it restarts.
 */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) {
    const port = FIRST + Math.floor(Math.random() * (EPHEMERAL - FIRST));
    if (isClaimed(port) && (await isFree(port))) ports.push(port);
  }
  return ports;
}

/** Claims a port for the caller. False if another test of the run has it. */
function isClaimed(port: number): boolean {
  try {
    mkdirSync(join(tmpdir(), `${KEPT}port-${port}`));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    return false;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, "127.0.0.1");
  const isListening = await once(server, "listening").then(
    () => true,
    () => false,
  );
  if (isListening) await once(server.close(), "close");
  return isListening;
}

function firstEphemeralPort(): number {
  try {
    const first = Number(readFileSync("/proc/sys/net/ipv4/ip_local_port_range", "utf8").split(/\s/)[0]);
    if (first >= 2 * FIRST) return first;
  } catch {
    // Only Linux has the file.
  }
  return 32_768;
}
