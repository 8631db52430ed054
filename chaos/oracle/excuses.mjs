import { CHANGING, CRASH_CODE, MAX_BATCH } from "../repository/models.mjs";

/** How much earlier or later than its cause a failure may be seen: on a busy machine, lines of a log come late. */
const SLACK_MS = 10_000;

const INSTANCE_DIED =
  /instance '([^']+)' of model '([^']+)' crashed: |Stub process '([^']+)' is not healthy\./;
const STATE_LOST = /an instance of model '([^']+)' failed, and the state of its sequences is lost/;
/** The next request of a sequence whose instance died between two requests. */
const SEQUENCE_GONE = /must specify the START flag on the first request of the sequence/;
const NOT_SERVED =
  /Request for unknown model|is not at ready state|is not found|has no available versions|has stopped accepting new inference requests|was stopped before the request finished|was stopped$/;
/** What a server without descriptors could not do: accept connections, start instances, open shared memory. */
const NO_DESCRIPTOR =
  /EMFILE|could not be started|Unable to open shared memory region|cannot connect|incomplete answer|ECONNRESET|UND_ERR_SOCKET|No connection established|Connection dropped/;
const MEMORY_SPENT = /request refused: /;

/**
 * Why a request may have failed; undefined when nothing that happened explains it.
 *
 * @param failure a failure of the journal
 * @param deaths instances that died, as the servers' logs name them
 * @param events the event log
 */
export function excuseOf(failure, deaths, events) {
  const { server, text } = failure;
  const overlaps = ({ at }) =>
    at >= (failure.since ?? failure.startedAt) - SLACK_MS && at <= failure.endedAt + SLACK_MS;
  const deathOf = (key, name) =>
    deaths.some((one) => one.server === server && one[key] === name && overlaps(one));
  const during = (name) => events.during(failure, name, SLACK_MS).filter((event) => event.server === server);
  const when = (isExplained, cause) => (isExplained ? cause : undefined);

  if (NO_DESCRIPTOR.test(text) && during("no descriptor free").length > 0) return "no descriptor free";
  const died = INSTANCE_DIED.exec(text);
  // An instance that cannot start again refuses requests until it can.
  if (died !== null && during("no descriptor free").length > 0) return "instance could not restart";
  if (died !== null) return when(deathOf("instance", died[1] ?? died[3]), "instance died");
  const lost = STATE_LOST.exec(text);
  if (lost !== null) return when(deathOf("model", lost[1]), "state of a sequence lost");
  if (SEQUENCE_GONE.test(text))
    return when(failure.since !== undefined && deathOf("model", failure.model), "sequence gone");
  if (MEMORY_SPENT.test(text))
    return when(during("flood of large requests").length > 0, "request memory spent");
  if (!NOT_SERVED.test(text)) return undefined;
  if (server === "serve" && failure.model === CHANGING)
    return when(during("model removed from the repository").length > 0, "model removed");
  return when(
    during("model unloaded and loaded").some(({ model }) => model === failure.model),
    "model unloaded",
  );
}

/** Largest number of requests that an instance of a model has at once. */
export function capacityOf(model) {
  return ["words", "python_count"].includes(model) ? 1 : MAX_BATCH;
}

/**
 * Instances that died without a cause, and those whose death failed more requests than they had.
 *
 * @returns descriptions of what is wrong
 */
export function faultsOfDeaths(failures, deaths, events) {
  const faults = [];
  const causes = {
    killed: events.events.filter(({ name }) => name === "model process killed").length,
    ended: events.events.filter(({ name }) => name === "worker thread ended").length,
    exhausted: events.events.filter(({ name }) => name === "worker thread exhausted its heap").length,
  };
  const seen = { killed: 0, ended: 0, exhausted: 0 };
  for (const { server, instance, why } of deaths) {
    const cause = causeOf(why);
    if (cause === undefined) faults.push(`instance '${instance}' of ${server} died by itself: ${why}`);
    else seen[cause]++;
  }
  for (const cause of Object.keys(causes)) {
    if (seen[cause] > causes[cause])
      faults.push(`expected at most ${causes[cause]} instances to be ${cause}, got ${seen[cause]}`);
  }
  const failed = new Map();
  for (const failure of failures) {
    const { server, text } = failure;
    const died = INSTANCE_DIED.exec(text);
    if (died === null || events.during(failure, "no descriptor free", SLACK_MS).length > 0) continue;
    const key = `${server}/${died[1] ?? died[3]}`;
    failed.set(key, (failed.get(key) ?? 0) + 1);
  }
  for (const [key, count] of failed) {
    const own = deaths.filter(({ server, instance }) => `${server}/${instance}` === key);
    const most = own.reduce((sum, { model }) => sum + capacityOf(model), 0);
    if (count > most)
      faults.push(`${own.length} deaths of instance ${key} may fail ${most} requests, but ${count} failed`);
  }
  return faults;
}

function causeOf(why) {
  if (/SIGKILL/.test(why)) return "killed";
  if (why.includes(`exited with code ${CRASH_CODE}`)) return "ended";
  if (/memory limit|heap out of memory/i.test(why)) return "exhausted";
  return undefined;
}
