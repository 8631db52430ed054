import { describe, expect, it, test } from "vitest";
import { packError, unpackError } from "../../../core/src/worker/messages.js";
import { closestName } from "../../src/closest-name.js";
import { cancelled } from "../../src/concurrency-gate.js";
import { errorReasons } from "../../src/error-reasons.js";
import {
  httpStatusOf,
  isTimeout,
  noAnswerError,
  queueFullError,
  TritonError,
  timeoutError,
} from "../../src/triton-error.js";

describe("TritonError", () => {
  it("is recognised by its brand, even from another copy of the library", () => {
    expect(TritonError.is(new TritonError("INTERNAL", "x"))).toBe(true);
    expect(TritonError.is({ [Symbol.for("tritonjs.error")]: true })).toBe(true);
    for (const other of [new Error("x"), undefined, null, "x", {}]) expect(TritonError.is(other)).toBe(false);
  });

  it("wraps any thrown value and keeps it as the cause", () => {
    const cause = new TypeError("wrong");
    expect(TritonError.from(cause)).toMatchObject({ code: "INTERNAL", message: "wrong", cause });
    expect(TritonError.from("text", "UNKNOWN")).toMatchObject({ code: "UNKNOWN", message: "text" });
    expect(TritonError.from(undefined).message).toBe("undefined");
    expect(TritonError.from(new RangeError()).message).toBe("RangeError");
  });

  it("passes through unchanged when a model throws it", () => {
    const error = new TritonError("NOT_FOUND", "no such user");
    expect(TritonError.from(error)).toBe(error);
  });

  it("has the reason that it was given, and otherwise the general reason of its code", () => {
    expect(new TritonError("UNAVAILABLE", "x", { reason: "MODEL_BUSY" }).reason).toBe("MODEL_BUSY");
    expect(new TritonError("UNAVAILABLE", "x").reason).toBe("UNAVAILABLE");
    expect(TritonError.from(new Error("x")).reason).toBe("INTERNAL");
    expect(queueFullError("", 5)).toMatchObject({ reason: "QUEUE_FULL", retryAfterMs: 5 });
  });

  it("does not take a reason of another code", () => {
    // @ts-expect-error INVALID_INPUT belongs to INVALID_ARG
    expect(new TritonError("UNAVAILABLE", "x", { reason: "INVALID_INPUT" }).code).toBe("UNAVAILABLE");
  });

  it("is known as a timeout by its reason, whatever its text", () => {
    expect(isTimeout(timeoutError())).toBe(true);
    expect(isTimeout(noAnswerError(5))).toBe(true);
    expect(isTimeout(new TritonError("UNAVAILABLE", "Request timeout expired"))).toBe(false);
  });

  it("keeps its reason, name and HTTP status on the way to a worker and back", () => {
    const error = new TritonError("UNAVAILABLE", "x", { reason: "TIME_LIMIT_EXCEEDED" });
    expect(unpackError(structuredClone(packError(error)))).toMatchObject({
      name: "TritonError",
      code: "UNAVAILABLE",
      message: "x",
      reason: "TIME_LIMIT_EXCEEDED",
      statusCode: 503,
    });
    const aborted = new TritonError("CANCELLED", "x", { name: "AbortError" });
    expect(unpackError(structuredClone(packError(aborted)))).toMatchObject({
      name: "AbortError",
      code: "CANCELLED",
      statusCode: 400,
    });
  });

  it("has the HTTP status of its code, and exposes its message below 500", () => {
    const codes = [...new Set(Object.values(errorReasons).map(({ code }) => code))];
    for (const code of codes) {
      const error = new TritonError(code, "x");
      expect([error.statusCode, error.status]).toEqual([httpStatusOf(code), httpStatusOf(code)]);
      expect(error.expose).toBe(error.statusCode < 500);
    }
    expect(codes.map((code) => httpStatusOf(code)).sort()).toEqual([400, 400, 400, 400, 404, 500, 501, 503]);
  });

  it("lets a framework set the status, as Koa does", () => {
    const error = Object.assign(new TritonError("INVALID_ARG", "x"), { status: 422, expose: false });
    expect([error.status, error.statusCode, error.expose]).toEqual([422, 400, false]);
    error.statusCode = 500;
    expect([error.statusCode, error.code]).toEqual([500, "INVALID_ARG"]);
  });

  it("is an AbortError for a call that a signal has ended, with the reason of the signal as its cause", () => {
    const { reason } = AbortSignal.abort();
    expect(cancelled(reason)).toMatchObject({ name: "AbortError", code: "CANCELLED", cause: reason });
    const own = new TritonError("CANCELLED", "the client was closed", { reason: "CLIENT_CLOSED_MEANWHILE" });
    expect(cancelled(own)).toBe(own);
  });
});

const KNOWN = ["modelName", "inferFunc", "inputs", "outputs", "config", "http-port", "http-address"];

describe("closest name", () => {
  test.each([
    ["modelname", "modelName"],
    ["model_name", "modelName"],
    ["inferFn", "inferFunc"],
    ["infer_func", "inferFunc"],
    ["inptus", "inputs"],
    ["ouput", "outputs"],
    ["confg", "config"],
    ["http-prot", "http-port"],
    ["httpPort", "http-port"],
    ["port", "http-port"],
    ["name", "modelName"],
  ])("finds the name that %s is a misspelling of", (given, meant) => {
    expect(closestName(given, KNOWN)).toBe(meant);
  });

  test.each(["", "x", "verbose", "grpc-port-range"])(
    "finds no name for %j, which resembles none",
    (given) => {
      expect(closestName(given, KNOWN)).toBeUndefined();
    },
  );
});
