/**
 * A request from its slot to its end. The loop that sends it owns it and uses it again. A carrier fills in its times
 * and its outcome.
 */
export class LoadRequest {
  /** Index of its payload in the data set. */
  payload = 0;
  /** Counts the requests of a thread. */
  number = 0;
  /** Correlation id; 0 without a sequence. */
  sequenceId = 0;
  sequenceStart = false;
  sequenceEnd = false;

  /* Times in milliseconds since the epoch; NaN until they are known. */
  scheduled = Number.NaN;
  sent = Number.NaN;
  sendEnd = Number.NaN;
  firstResponse = Number.NaN;
  end = Number.NaN;
  /** Responses with outputs. */
  responses = 0;
  /** Text of the error. */
  failure: string | undefined;
  /** True if it was sent more than 1 ms after its slot. */
  isDelayed = false;
  /** True if it failed because there is no connection, or the connection was lost. */
  isConnectionLost = false;

  /* Only where single responses are kept. */
  responseTimes: number[] | undefined;
  responseTokens: number[] | undefined;
  responseOutputs: string[] | undefined;
  inputTokens = 0;

  /** Calls `onPeriod` with this number of responses; 0 for never. */
  period = 0;
  onPeriod: (() => void) | undefined;

  /** The sequence that it belongs to, for the loop. */
  slot: unknown;
  /** What the carrier knows of it while it is in flight. */
  carried: unknown;
  /** Index in the list of requests in flight. */
  place = 0;

  /** Makes it a new request. */
  reset(scheduled: number, number: number, kept: { readonly responses: boolean }): void {
    this.number = number;
    this.sequenceId = 0;
    this.sequenceStart = false;
    this.sequenceEnd = false;
    this.scheduled = scheduled;
    this.sent = Number.NaN;
    this.sendEnd = Number.NaN;
    this.firstResponse = Number.NaN;
    this.end = Number.NaN;
    this.responses = 0;
    this.failure = undefined;
    this.isDelayed = false;
    this.isConnectionLost = false;
    this.inputTokens = 0;
    this.period = 0;
    this.slot = undefined;
    this.carried = undefined;
    if (!kept.responses) return;
    this.responseTimes = [];
    this.responseTokens = [];
    this.responseOutputs = [];
  }

  /** Notes that a response with outputs begins to arrive. */
  responded(now: number): void {
    if (this.responses === 0) this.firstResponse = now;
    this.responses++;
    this.responseTimes?.push(now);
    if (this.responses === this.period) this.onPeriod?.();
  }

  fail(text: string): void {
    this.failure ??= text;
  }
}
