import { Writable } from "node:stream";
import { pino } from "pino";
import { describe, expect, it } from "vitest";
import winston from "winston";
import type { Logger } from "../../../src/observe/log.js";
import { Log } from "../../../src/observe/log.js";

const about = { model: "resnet", version: 2, request_id: "a", trace_id: "0af7651916cd43dd8448eb211c80319c" };

/** Writes a line with fields and a line without. */
function writeTwo(logger: Logger): void {
  const log = new Log(logger);
  log.warning("slow", about);
  log.info("ready");
}

/** A stream that keeps its lines. */
function lines(): { readonly stream: Writable; readonly read: () => Record<string, unknown>[] } {
  const texts: string[] = [];
  const stream = new Writable({
    write(chunk, _encoding, done) {
      texts.push(String(chunk));
      done();
    },
  });
  return {
    stream,
    read: () =>
      texts
        .join("")
        .trim()
        .split("\n")
        .map((text) => JSON.parse(text)),
  };
}

describe("the fields of a line", () => {
  it("are fields of pino's line", () => {
    const { stream, read } = lines();
    writeTwo(pino({ base: null, timestamp: false }, stream));
    expect(read()).toEqual([
      { level: 40, ...about, msg: "slow" },
      { level: 30, msg: "ready" },
    ]);
  });

  it("are fields of winston's line", async () => {
    const { stream, read } = lines();
    const logger = winston.createLogger({ transports: [new winston.transports.Stream({ stream })] });
    writeTwo(logger);
    logger.end();
    await new Promise((resolve) => logger.on("finish", resolve));
    expect(read()).toEqual([
      { level: "warn", ...about, message: "slow" },
      { level: "info", message: "ready" },
    ]);
  });

  it("do not reach a logger in the shape of console, which would print them", () => {
    const calls: unknown[][] = [];
    const at = (...args: unknown[]) => void calls.push(args);
    writeTwo({ error: at, warn: at, info: at, debug: at });
    expect(calls).toEqual([["slow"], ["ready"]]);
  });
});
