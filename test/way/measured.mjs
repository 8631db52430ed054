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
    /** Resolves when the process has ended. */
    end() {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.disconnect();
      return ended;
    },
  };
}

const RUNS = 9;

/**
 * Prints the files that one run enters on the server's main thread, and in the worker if there is one, as JSON.
 *
 * @param workerWays ways of the requests in the worker so far
 */
export async function report(run, workerWays = []) {
  const ways = [];
  for (let i = 0; i < RUNS; i++) {
    await settled();
    globalThis.entered = [];
    await run();
    await settled();
    ways.push(globalThis.entered);
    globalThis.entered = undefined;
  }
  console.log(JSON.stringify({ main: shortest(ways), worker: shortest(workerWays.slice(-RUNS)) }));
}

/** Other work of the server may fall into a run, so the shortest of several ways counts. */
function shortest(ways) {
  return ways.reduce((one, other) => (other.length < one.length ? other : one), ways[0] ?? []);
}

/** Resolves after what the event loop still had to do for the last request. */
async function settled() {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
}
