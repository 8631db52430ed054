import { readdirSync, readFileSync } from "node:fs";

const MEGABYTE = 1e6;

/** Resident memory of this process in megabytes. On Linux, that of its child processes is included. */
export function residentMegabytes(): number {
  return (process.memoryUsage.rss() + childBytes(process.pid)) / MEGABYTE;
}

function childBytes(pid: number): number {
  if (process.platform !== "linux") return 0;
  let sum = 0;
  try {
    for (const task of readdirSync(`/proc/${pid}/task`)) {
      const children = readFileSync(`/proc/${pid}/task/${task}/children`, "utf8").split(" ").filter(Boolean);
      for (const child of children) sum += bytesOf(child) + childBytes(Number(child));
    }
  } catch {
    // A process may end while it is read.
  }
  return sum;
}

function bytesOf(pid: string): number {
  const [, kilobytes = "0"] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kilobytes) * 1024;
}
