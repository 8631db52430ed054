import { status } from "@grpc/grpc-js";
import type { Failure } from "../../call/retry.js";
import type { ReceivedStatus } from "./call-status.js";

/** Texts of grpc-js for calls without a connection. */
const NOT_SENT = /^(No connection established|Name resolution failed)/;

/** Texts of grpc-js for calls that lost their connection, or whose proxy lost its connection to the server. */
const LOST =
  /^(Connection dropped|Stream refused|Received RST_STREAM|Received HTTP status code 502|read |write )/;

/** Kind of failure of a status; undefined for a failure that a retry would not change. */
export function failureOf({ code, details }: ReceivedStatus): Failure | undefined {
  if (code !== status.UNAVAILABLE && code !== status.INTERNAL) return undefined;
  if (NOT_SENT.test(details)) return "not-sent";
  if (LOST.test(details)) return "lost";
  return code === status.UNAVAILABLE ? "unavailable" : undefined;
}
