import { fork } from "node:child_process";
import { setPriority } from "node:os";
import { startProcess } from "../../files/start-process.js";
import type { Channel, OpenChannel } from "./channel.js";
import { type FromWorker, type ToWorker, unpackError } from "./messages.js";
import { ownProgram } from "./own-program.js";

/** Last message of a child process that dies of an uncaught error. */
export interface ProcessFault {
  readonly type: "fault";
  readonly error: Parameters<typeof unpackError>[0];
}

/** Milliseconds that a process may take to flush its output and end, before it is killed. */
const END_WITHIN_MS = 1000;

/** Debugger options, which are not passed on: two debuggers cannot listen on one port. */
const DEBUGGING = /^--(inspect|debug)/;

/**
 * Starts a child process. Its memory is its own, and is returned to the system when it ends; its crash affects no other
 * process. Messages use Node's own channel, and are copied once on each side.
 */
export const openProcess: OpenChannel = ({ heapLimitMb, nice }, listener) => {
  const main = ownProgram(new URL("./process-main.js", import.meta.url));
  const execArgv = process.execArgv.filter((argument) => !DEBUGGING.test(argument));
  if (heapLimitMb !== undefined) execArgv.push(`--max-old-space-size=${heapLimitMb}`);
  const child = startProcess(() =>
    fork(main, [], {
      execArgv,
      serialization: "advanced",
      // It inherits our output streams, so its output cannot fill our memory.
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    }),
  );
  if (nice !== undefined && child.pid !== undefined) lowerPriority(child.pid, nice);
  let how: string | undefined;
  let fault: unknown;
  let gone = false;
  let patience: NodeJS.Timeout | undefined;
  const end = () => {
    // Its last messages may still arrive after it has ended.
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
    // A process that closed the channel can receive no more messages.
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

/** Ignores a failed write: `disconnect` reports a broken channel. */
function ignoreFailure(): void {}

function lowerPriority(pid: number, nice: number): void {
  try {
    setPriority(pid, nice);
  } catch (error) {
    process.emitWarning(`cannot give a child process the priority ${nice}: ${(error as Error).message}`);
  }
}
