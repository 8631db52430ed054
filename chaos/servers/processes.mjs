import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/* Reads from Linux's /proc: processes, their memory and their descriptors. */

/** The text of a file of a process; empty when the process is gone. */
function read(pid, file) {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return "";
  }
}

/** The running processes by the process that started them. */
function processTree() {
  const children = new Map();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const stat = read(name, "stat");
    const [state, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (state === undefined || state === "Z") continue;
    const list = children.get(Number(parent)) ?? [];
    list.push(Number(name));
    children.set(Number(parent), list);
  }
  return children;
}

/** The processes that a process has started itself. */
export function childrenOf(pid) {
  return processTree().get(pid) ?? [];
}

/** The processes that a process has started, directly or through others. */
export function descendants(pid) {
  const tree = processTree();
  const found = [];
  const visit = (one) => {
    for (const child of tree.get(one) ?? []) {
      found.push(child);
      visit(child);
    }
  };
  visit(pid);
  return found;
}

/** True while the process exists and has not ended. */
export function isRunning(pid) {
  const stat = read(pid, "stat");
  return stat !== "" && stat.slice(stat.lastIndexOf(")") + 2)[0] !== "Z";
}

export function commandOf(pid) {
  return read(pid, "cmdline").replaceAll("\0", " ").trim();
}

/** Resident memory in MiB. */
export function residentMb(pid) {
  const kilobytes = Number(/^VmRSS:\s+(\d+)/m.exec(read(pid, "status"))?.[1] ?? 0);
  return kilobytes / 1024;
}

/** What each open descriptor of a process stands for: a path, or `socket:[1234]` and the like. */
function targets(pid) {
  return readdirSync(`/proc/${pid}/fd`).flatMap((name) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${name}`)];
    } catch {
      // Closed since the listing.
      return [];
    }
  });
}

/** The number of open descriptors of each kind: sockets, pipes, files, and the kernel's own objects. */
export function descriptors(pid) {
  const counts = { socket: 0, pipe: 0, file: 0, other: 0 };
  for (const target of targets(pid)) {
    if (target.startsWith("socket:")) counts.socket++;
    else if (target.startsWith("pipe:")) counts.pipe++;
    else if (target.startsWith("/")) counts.file++;
    else counts.other++;
  }
  return counts;
}

/** States of TCP connections by their number in /proc/net/tcp. */
const TCP_STATES = ["", "established", "", "", "", "", "", "", "close-wait", "", "listen"];

/** The sockets of a process: those of TCP with their state and ports, the others with their kind. */
export function sockets(pid) {
  const names = new Map();
  for (const file of ["tcp", "tcp6"]) {
    for (const line of read(pid, `net/${file}`).split("\n").slice(1)) {
      const [, local = "", remote = "", state = "", , , , , , inode] = line.trim().split(/\s+/);
      const [from, to] = [local, remote].map((address) => Number.parseInt(address.split(":")[1], 16));
      const number = Number.parseInt(state, 16);
      names.set(inode, `TCP ${TCP_STATES[number] || `state ${number}`} from port ${from} to ${to}`);
    }
  }
  return targets(pid)
    .filter((target) => target.startsWith("socket:"))
    .map((target) => names.get(/\d+/.exec(target)[0]) ?? "not TCP");
}

export function descriptorCount(pid) {
  return readdirSync(`/proc/${pid}/fd`).length;
}

/** Paths of the files that the process has open. */
export function openFiles(pid) {
  return targets(pid).filter((target) => target.startsWith("/") && !target.startsWith("/dev/"));
}

export function threadCount(pid) {
  return Number(/^Threads:\s+(\d+)/m.exec(read(pid, "status"))?.[1] ?? 0);
}
