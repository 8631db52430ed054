/** The longest delay of `setTimeout`, in milliseconds. A longer delay counts as none. */
export const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;
