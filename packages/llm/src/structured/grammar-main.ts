import { parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";
import { GrammarJobs, type GrammarRequest } from "./grammar-jobs.js";
import type { GrammarThreadData } from "./grammar-thread.js";
import { TokenBytes } from "./token-masks.js";

/* Program of the thread that reads formats and makes masks. */

const port = parentPort!;
const { vocabulary, endTokens, allowsUnheld, maxBytes } = workerData as GrammarThreadData;
const { tokens, spelling, size = tokens.length } = vocabulary;
/** The message that began a turn of the event loop. The jobs take all others themselves. */
let first: GrammarRequest | undefined;
const jobs = new GrammarJobs(new TokenBytes(tokens, spelling, size), endTokens, allowsUnheld, maxBytes, {
  next: () => {
    const request = first;
    first = undefined;
    return request ?? (receiveMessageOnPort(port)?.message as GrammarRequest | undefined);
  },
  answer: (answer) => port.postMessage(answer),
});
port.on("message", (request: GrammarRequest) => {
  first = request;
  jobs.run();
});
