import { CHANGING, CRASH_CODE, MAX_BATCH } from "../repository/models.mjs";

/** How much earlier or later than its cause a client may see a failure. */
const SLACK_MS = 3000;

const INSTANCE_DIED =
  /instance '([^']+)' of model '([^']+)' crashed: |Stub process '([^']+)' is not healthy\./;
const STATE_LOST = /an instance of model '([^']+)' failed, and the state of its sequences is lost/;
/** The next request of a sequence whose instance died between two requests. */
const SEQUENCE_GONE = /must specify the START flag on the first request of the sequence/;
const NOT_SERVED =
  /Request for unknown model|is not at ready state|is not found|has no available versions|has stopped accepting new inference requests|was stopped before the request finished|was stopped$/;
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
  const died = INSTANCE_DIED.exec(text);
  if (died !== null) {
    const instance = died[1] ?? died[3];
    const death = deaths.find((one) => one.server === server && one.instance === instance && overlaps(one));
    return death && "instance died";
  }
  const lost = STATE_LOST.exec(text);
  if (lost !== null) {
    const death = deaths.find((one) => one.server === server && one.model === lost[1] && overlaps(one));
    return death && "state of a sequence lost";
  }
  if (SEQUENCE_GONE.test(text) && failure.since !== undefined) {
    const death = deaths.find((one) => one.server === server && one.model === failure.model && overlaps(one));
    return death && "sequence gone";
  }
  if (MEMORY_SPENT.test(text))
    return during(events, failure, "flood of large requests") && "request memory spent";
  if (!NOT_SERVED.test(text)) return undefined;
  if (server === "serve" && failure.model === CHANGING)
    return during(events, failure, "model removed from the repository") && "model removed";
  return (
    events
      .during(failure, "model unloaded and loaded", SLACK_MS)
      .some(({ model }) => model === failure.model) && "model unloaded"
  );
}

const during = (events, failure, name) => events.during(failure, name, SLACK_MS).length > 0;

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
  for (const { server, text } of failures) {
    const died = INSTANCE_DIED.exec(text);
    if (died === null) continue;
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
