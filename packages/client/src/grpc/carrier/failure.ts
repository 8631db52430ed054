import { status } from "@grpc/grpc-js";
import type { Failure } from "../../call/retry.js";
import type { ReceivedStatus } from "./call-status.js";

/** What grpc-js says of calls that found no connection. */
const NOT_SENT = /^(No connection established|Name resolution failed)/;

/** What it says of calls whose connection broke. */
const LOST = /^(Connection dropped|Stream refused|Received RST_STREAM|read |write )/;

/** What kind of failure a status is; undefined for one that would come again. */
export function failureOf({ code, details }: ReceivedStatus): Failure | undefined {
  if (code !== status.UNAVAILABLE && code !== status.INTERNAL) return undefined;
  if (NOT_SENT.test(details)) return "not-sent";
  if (LOST.test(details)) return "lost";
  return code === status.UNAVAILABLE ? "unavailable" : undefined;
}
