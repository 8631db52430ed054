import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";

/** Starts a client in a process of its own, which sends a message when it has got an answer. */
export function clientOf(program, url) {
  const child = fork(fileURLToPath(new URL(program, import.meta.url)), [url], { execArgv: [] });
  const answer = () => new Promise((resolve) => child.once("message", resolve));
  return {
    answer,
    ask(requests) {
      const answered = answer();
      child.send(requests);
      return answered;
    },
    end: () => child.disconnect(),
  };
}

/**
 * Prints the files that one run enters, as JSON. Other work of the server may fall into a run, so the shortest of several
 * runs counts.
 */
export async function report(run) {
  const ways = [];
  for (let i = 0; i < 9; i++) {
    await settled();
    globalThis.entered = [];
    await run();
    await settled();
    ways.push(globalThis.entered);
    globalThis.entered = undefined;
  }
  ways.sort((one, other) => one.length - other.length);
  console.log(JSON.stringify(ways[0]));
}

/** Resolves after what the event loop still had to do for the last request. */
async function settled() {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
}
