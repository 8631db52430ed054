import type { Logger } from "@tritonjs/core";

/** Drops the log of servers with many expected errors. */
export const quietLogger: Logger = { error() {}, warn() {}, info() {}, debug() {} };
