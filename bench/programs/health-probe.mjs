/* Probes the health of a server, in a process that the load of other clients does not slow down. */

import { probeHealth } from "../support/probe-health.mjs";
import { answerCalls } from "../support/program.mjs";

let probe;
answerCalls({
  start: (url) => {
    probe = probeHealth(url);
  },
  stop: () => probe.stop(),
});
