/** What a frame is about. */
export const KIND = {
  /** A request for a model. */
  request: 1,
  /** The sender gives a request up. */
  cancel: 2,
  /** The sender can take no more responses for now. */
  pause: 3,
  /** The sender can take responses again. */
  resume: 4,
  /** The sender wants no more responses. */
  stop: 5,
  /** A response, an error, or the end of a request. */
  response: 6,
  /** The frame itself is in memory that was handed over, because it is too large for the ring. */
  elsewhere: 7,
  /** The last marks of the trace of a request, which is over. */
  traced: 8,
} as const;

/** Bits of the second word before the flags: those of the kind. */
export const KIND_BITS = 4;

/** Flag of every kind of frame: memory was handed over with it. */
export const MOVED = 1;
