import { now } from "../clock.mjs";

/** Everything that was done to the servers, with its times. The oracle asks it what can explain a failure. */
export class EventLog {
  /** `{ name, server, model, detail, from, to }`, `to` undefined while an event goes on. */
  events = [];
  #startedAt = now();
  #write;

  /** @param write shows a line */
  constructor(write) {
    this.#write = write;
  }

  /** Records that an event begins. @returns the event; set its end with `end` */
  begin(name, about = {}) {
    const event = { name, ...about, from: now(), to: undefined };
    this.events.push(event);
    const seconds = ((event.from - this.#startedAt) / 1000).toFixed(2);
    const details = [about.server, about.model, about.detail].filter((part) => part !== undefined);
    this.#write(`${seconds.padStart(8)} s  ${name}${details.length > 0 ? ` (${details.join(", ")})` : ""}`);
    return event;
  }

  end(event) {
    event.to = now();
  }

  /** Records something that happens in an instant. */
  note(name, about) {
    const event = this.begin(name, about);
    this.end(event);
    return event;
  }

  /** Number of events by name. */
  counts() {
    const counts = {};
    for (const { name } of this.events) counts[name] = (counts[name] ?? 0) + 1;
    return counts;
  }

  /** Events of a name that overlap the time of a request. */
  during({ startedAt, endedAt, since = startedAt }, name, slackMs) {
    return this.events.filter(
      (event) =>
        event.name === name &&
        event.from <= endedAt + slackMs &&
        (event.to ?? Number.POSITIVE_INFINITY) >= since - slackMs,
    );
  }
}
