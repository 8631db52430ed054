import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { TritonError } from "@tritonjs/protocol";
import { pino } from "pino";
import { describe, expect, it, onTestFinished } from "vitest";
import winston from "winston";
import { createLog, lineLogger } from "../../src/observe/create-log.js";
import { Log, type LogFormat, type Logger, passing } from "../../src/observe/log.js";
import { ErrorLog } from "../../src/observe/statistics.js";

function collect(): { logger: Logger; messages: string[] } {
  const messages: string[] = [];
  const at = (level: string) => (message: string) => messages.push(`${level} ${message}`);
  return { logger: { error: at("E"), warn: at("W"), info: at("I"), debug: at("V") }, messages };
}

function writeOneOfEach(log: Log): void {
  log.error("e");
  log.warning("w");
  log.info("i");
  log.verbose(1, "v1");
  log.verbose(2, "v2");
}

describe("log", () => {
  it("a line that names its module has it as its place", () => {
    const lines: string[] = [];
    lineLogger(
      (line) => lines.push(line),
      () => "ISO8601",
      () => Date.UTC(2026, 4, 9, 1, 2, 3),
    ).info("x", { module: "warm-up" });
    expect(lines).toEqual([`2026-05-09T01:02:03Z I ${process.pid} warm-up:0] "x"\n`]);
  });

  it("the log of a module shares settings, destination and tail, and adds its module", () => {
    const lines: unknown[] = [];
    const log = new Log(passing((level, message, about) => lines.push([level, message, about])));
    const module = log.of("model_lifecycle");
    module.verbose(1, "hidden");
    log.update({ verboseLevel: 1 });
    module.verbose(1, "shown");
    module.info("loading", { model: "m" });
    log.info("plain");
    expect(lines).toEqual([
      ["debug", "shown", { module: "model_lifecycle" }],
      ["info", "loading", { module: "model_lifecycle", model: "m" }],
      ["info", "plain", undefined],
    ]);
    expect(log.tail().map(({ message }) => message)).toEqual(["shown", "loading", "plain"]);
    expect(module.settings).toBe(log.settings);
  });
});

describe("log settings", () => {
  it.each([
    [{}, ["E e", "W w", "I i"]],
    [{ verboseLevel: 1 }, ["E e", "W w", "I i", "V v1"]],
    [{ error: false, info: false, verboseLevel: 2 }, ["W w", "V v1", "V v2"]],
    [{ error: false, info: false, warning: false }, []],
  ])("%j let through %j", (settings, expected) => {
    const { logger, messages } = collect();
    writeOneOfEach(new Log(logger, settings));
    expect(messages).toEqual(expected);
  });

  it("can change while the log is in use", () => {
    const { logger, messages } = collect();
    const log = new Log(logger);
    log.update({ info: false, verboseLevel: 2 });
    writeOneOfEach(log);
    expect(messages).toEqual(["E e", "W w", "V v1", "V v2"]);
  });
});

describe("log lines", () => {
  it.each<[LogFormat, string]>([
    ["default", `W0509 01:02:03.045000 ${process.pid} tritonjs:0] "one\\ntwo"\n`],
    ["ISO8601", `2026-05-09T01:02:03Z W ${process.pid} tritonjs:0] "one\\ntwo"\n`],
  ])("look as in Triton: %s", (format, expected) => {
    const lines: string[] = [];
    const now = Date.UTC(2026, 4, 9, 1, 2, 3, 45);
    lineLogger(
      (line) => lines.push(line),
      () => format,
      () => now,
    ).warn("one\ntwo");
    expect(lines).toEqual([expected]);
  });

  it("are objects in JSON, with the model and the version as fields", () => {
    const lines: string[] = [];
    const logger = lineLogger(
      (line) => lines.push(line),
      () => "json",
      () => Date.UTC(2026, 4, 9, 1, 2, 3, 45),
    );
    const log = new Log(logger, { verboseLevel: 1 });
    log.warning('a "quoted"\nmessage');
    log.error("failed to load 'm'", { model: "m", version: 2 });
    log.verbose(1, "\nname: m\n", { model: "m" });
    expect(lines.every((line) => line.indexOf("\n") === line.length - 1)).toBe(true);
    const common = { time: "2026-05-09T01:02:03.045Z", pid: process.pid };
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      { ...common, level: "warn", message: 'a "quoted"\nmessage' },
      { ...common, level: "error", message: "failed to load 'm'", model: "m", version: "2" },
      { ...common, level: "debug", message: "name: m", model: "m" },
    ]);
  });

  it("leave the model to lines in JSON: other loggers get the message alone", () => {
    const given: unknown[][] = [];
    const take = (...args: unknown[]) => void given.push(args);
    new Log({ error: take, warn: take, info: take, debug: take }).info("loading: m:1", { model: "m" });
    expect(given).toEqual([["loading: m:1"]]);
  });

  it("show tables unchanged", () => {
    const lines: string[] = [];
    lineLogger(
      (line) => lines.push(line),
      () => "ISO8601",
      () => Date.UTC(2026, 4, 9, 1, 2, 3, 45),
    ).info("\n+---+\n| a |\n+---+\n");
    expect(lines).toEqual([`2026-05-09T01:02:03Z I ${process.pid} tritonjs:0] \n+---+\n| a |\n+---+\n\n`]);
  });
});

describe("a log file", () => {
  function folder(): string {
    const path = mkdtempSync(join(tmpdir(), "tritonjs-log-"));
    onTestFinished(() => rmSync(path, { recursive: true }));
    return path;
  }

  it("receives lines in the current format until it is closed", () => {
    const file = join(folder(), "server.log");
    const { log, close } = createLog({ logFile: file });
    log.info("first");
    log.update({ format: "ISO8601" });
    log.error("second");
    close();
    log.info("third");
    expect(log.settings.file).toBe(file);
    expect(readFileSync(file, "utf8")).toMatch(/^I\d{4} .* "first"\n\d{4}-\d\d-\d\dT\S+Z E .* "second"\n$/);
  });

  it("is rejected when it cannot be opened, and together with a logger", () => {
    const path = join(folder(), "none", "server.log");
    expect(() => createLog({ logFile: path })).toThrow(`failed to open log file '${path}'`);
    expect(() => createLog({ logFile: "x", logger: console })).toThrow(
      "logFile and logger are both given: leave one of them out",
    );
  });
});

describe("log tail", () => {
  it("keeps the last 200 messages that were written", () => {
    const none = () => {};
    const log = new Log({ error: none, warn: none, info: none, debug: none });
    log.verbose(1, "not written");
    for (let i = 1; i <= 250; i++) log.info(`message ${i}`);
    log.error("y".repeat(5000));
    const tail = log.tail();
    expect(tail).toHaveLength(200);
    expect(tail[0]).toMatchObject({ number: 52, level: "info", message: "message 52" });
    expect(tail.at(-1)).toMatchObject({ number: 251, level: "error" });
    expect(tail.at(-1)?.message).toHaveLength(1000);
    expect(log.tail(250)).toHaveLength(1);
    expect(log.tail(251)).toEqual([]);
  });
});

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

describe("error log", () => {
  it("keeps the last 16 different failures, and counts equal ones", () => {
    const log = new ErrorLog();
    for (let i = 0; i < 20; i++) log.record(new TritonError("INTERNAL", `fault ${i}`), i);
    for (let i = 0; i < 1000; i++) log.record(new TritonError("INTERNAL", "flood"), 100 + i);
    expect(log.recent).toHaveLength(16);
    expect(log.recent[0]).toEqual({ at: 1099, code: "INTERNAL", message: "flood", count: 1000 });
    expect(log.recent[1]?.message).toBe("fault 19");
    log.record(new TritonError("INTERNAL", "x".repeat(10_000)), 0);
    expect(log.recent[0]?.message).toHaveLength(500);
  });
});
