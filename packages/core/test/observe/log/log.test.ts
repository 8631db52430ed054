import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { createLog, lineLogger } from "../../../src/observe/create-log.js";
import type { Logger } from "../../../src/observe/log.js";
import { Log, type LogFormat, passing } from "../../../src/observe/log.js";

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
