import type { Logger } from "@tritonjs/core";

/** Takes the log of servers that have much to complain about. */
export const quietLogger: Logger = { error() {}, warn() {}, info() {}, debug() {} };
