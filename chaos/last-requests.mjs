import { setTimeout as sleep } from "node:timers/promises";
import { now, until } from "./clock.mjs";
import { clientsOf, Traffic } from "./load/traffic.mjs";
import { Journal } from "./oracle/journal.mjs";
import { descendants, isRunning } from "./servers/processes.mjs";

/** Time that a request may take to the server, and a signal to have an effect. */
const ON_THE_WAY_MS = 3000;

/** Refusals of a stopping server: it has not accepted the request. */
const REFUSED = /Server not ready|Server is stopping|has stopped accepting new (inference )?requests/;

/** Errors of a connection that the server did not accept. */
const NOT_CONNECTED = /cannot connect|ECONNREFUSED|No connection established/;

/** Errors of a connection that was closed between two requests. */
const CLOSED = /ECONNRESET|EPIPE|incomplete answer|UND_ERR_SOCKET|Connection dropped/;

/**
 * Ends both servers under load: `serve` with SIGTERM, which loses nothing that it has accepted, and the program with
 * SIGKILL. No process of either may be left.
 */
export async function lastRequests({ servers, random, python, log }) {
  const faults = [];
  const counts = {};
  const journal = new Journal();
  const traffic = new Traffic({ journal, random: random.fork("last"), python });
  const { serve, program } = servers;
  const clients = { serve: clientsOf(serve), program: clientsOf(program) };
  traffic.startServed(clients.serve);
  traffic.startBound(clients.program);
  await sleep(1500);
  const children = [...descendants(serve.pid), ...descendants(program.pid)];
  const signalled = now();
  log.note("SIGTERM under load", { server: "serve" });
  serve.signal("SIGTERM");
  log.note("SIGKILL under load", { server: "program" });
  program.signal("SIGKILL");
  const [{ code }] = await Promise.all([serve.ended, program.ended]);
  if (code !== 0) faults.push(`serve ended with code ${code} on SIGTERM, expected 0`);
  await traffic.stop();
  // The regions went with the servers.
  await traffic.close().catch(() => {});
  await Promise.all(Object.values(clients).map((client) => client.close()));
  for (const failure of journal.failures) {
    counts[failure.server] = (counts[failure.server] ?? 0) + 1;
    const { protocol, server, model, text, startedAt, endedAt } = failure;
    const wasOnTheWay = startedAt >= signalled - ON_THE_WAY_MS;
    const isExcused =
      endedAt >= signalled &&
      (server === "program" ||
        REFUSED.test(text) ||
        NOT_CONNECTED.test(text) ||
        (wasOnTheWay && CLOSED.test(text)));
    if (!isExcused)
      faults.push(
        `${protocol} request to '${model}' of ${server} was lost when it ended: ${failure.code} ${text} ` +
          `(sent ${(startedAt - signalled).toFixed(0)} ms and failed ${(endedAt - signalled).toFixed(0)} ms after the signal)`,
      );
  }
  faults.push(...journal.faults);
  await until(() => !children.some(isRunning), "all processes of the servers to end", 20_000).catch(() =>
    faults.push(`${children.filter(isRunning).length} processes were left behind`),
  );
  return { faults, counts };
}
