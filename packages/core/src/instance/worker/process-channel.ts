import { fork } from "node:child_process";
import { setPriority } from "node:os";
import { fileURLToPath } from "node:url";
import type { Channel, OpenChannel } from "./channel.js";
import { type FromWorker, type ToWorker, unpackError } from "./messages.js";

/** What a child process says before it dies of an error that nobody caught. */
export interface ProcessFault {
  readonly type: "fault";
  readonly error: Parameters<typeof unpackError>[0];
}

/** How long a process may take to write what it has to and end, before it is ended. */
const END_WITHIN_MS = 1000;

/** Two debuggers cannot listen on one port. */
const DEBUGGING = /^--(inspect|debug)/;

/**
 * A child process: memory of its own, which the system has back when it ends, and a death that is nobody else's. The
 * messages go over Node's own channel, copied once on each side.
 */
export const openProcess: OpenChannel = ({ heapLimitMb, nice }, listener) => {
  const main = fileURLToPath(new URL("./process-main.js", import.meta.url));
  const execArgv = process.execArgv.filter((argument) => !DEBUGGING.test(argument));
  if (heapLimitMb !== undefined) execArgv.push(`--max-old-space-size=${heapLimitMb}`);
  const child = fork(main, [], {
    execArgv,
    serialization: "advanced",
    // Its output goes where ours does, and cannot fill our memory.
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  if (nice !== undefined && child.pid !== undefined) lowerPriority(child.pid, nice);
  let how: string | undefined;
  let fault: unknown;
  let gone = false;
  let patience: NodeJS.Timeout | undefined;
  const end = () => {
    // What it said last may still be on its way when it has ended.
    if (gone || how === undefined || child.connected) return;
    gone = true;
    clearTimeout(patience);
    channel.listener.gone(how, fault);
  };
  child.on("message", (message: FromWorker | ProcessFault) => {
    if (message.type === "fault") fault = unpackError(message.error);
    else channel.listener.message(message);
  });
  child.on("exit", (code, signal) => {
    how = signal === null ? `exited with code ${code}` : `was ended by ${signal}`;
    end();
  });
  child.on("disconnect", () => {
    // Whoever cut the line cannot be told anything any more.
    child.kill("SIGKILL");
    end();
  });
  child.on("error", (error) => {
    if (child.pid !== undefined) return;
    how = "could not be started";
    fault = error;
    end();
  });
  const post: Channel["post"] = (message) => {
    if (child.connected) child.send(message, ignoreFailure);
  };
  const channel: Channel = {
    details: { pid: String(child.pid) },
    listener,
    post,
    finish: () => post({ type: "stop" }, []),
    lowerPriority: (nice) => {
      if (child.pid !== undefined) lowerPriority(child.pid, nice);
    },
    end: (closeWithinMs = 0) => {
      if (child.connected) child.send({ type: "stop" } satisfies ToWorker, ignoreFailure);
      patience = setTimeout(() => child.kill("SIGKILL"), closeWithinMs + END_WITHIN_MS);
    },
    kill: () => void child.kill("SIGKILL"),
  };
  return channel;
};

/** A line that breaks is told by `disconnect`. */
function ignoreFailure(): void {}

function lowerPriority(pid: number, nice: number): void {
  try {
    setPriority(pid, nice);
  } catch (error) {
    process.emitWarning(`cannot give a child process the priority ${nice}: ${(error as Error).message}`);
  }
}
