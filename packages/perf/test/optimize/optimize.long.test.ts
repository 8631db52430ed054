import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import { repository } from "@tritonjs/repository";
import { readPrototxt } from "@tritonjs/repository/config";
import { afterAll, describe, expect, it } from "vitest";
import { repositoryRoot } from "../../../../test/support/repository.js";
import { optimize } from "../../src/optimize/optimize.js";
import { optimizeCommand } from "../../src/optimize/optimize-command.js";
import { writeDigits } from "./digits-network.js";

const folder = mkdtempSync(join(tmpdir(), "optimize-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** The two networks, which take seconds to train. */
const plain = writeDigits(join(folder, "plain"), false);
const outlier = writeDigits(join(folder, "outlier"), true);

const terminalOf = (stop?: Promise<unknown>) => {
  const out: string[] = [];
  const errors: string[] = [];
  return {
    out,
    errors,
    write: (text: string) => void out.push(text),
    writeError: (text: string) => void errors.push(text),
    ...(stop !== undefined && { stopRequested: () => stop }),
  };
};

describe("optimize", { timeout: 300_000 }, () => {
  it("writes the form of a digits network that is best within the limits, ready to serve", async () => {
    const { model, inputData, labels } = plain;
    const exportPath = join(folder, "plain-results");
    const names = Array.from({ length: 10 }, (_, i) => `digit ${i}`);
    const result = await optimize({
      model,
      inputData: [inputData],
      labels,
      classNames: names,
      exportPath,
      goal: "size",
      intervalMs: 60,
    });
    const byName = new Map(result.variants.map((variant) => [variant.name, variant]));
    const bytes = (name: string) => byName.get(name)!.bytes / byName.get("original")!.bytes;
    expect(byName.get("original")!.comparison!.accuracy).toBeGreaterThan(0.85);
    expect(bytes("dynamic-int8")).toBeLessThanOrEqual(0.28);
    expect(bytes("fp16")).toBeLessThanOrEqual(0.52);
    expect(bytes("int4-weights")).toBeLessThanOrEqual(0.2);
    expect(["int4-weights", "dynamic-int8", "int4-weights-mixed"]).toContain(result.choice!.variant.name);
    const written = join(exportPath, "models", "digits");
    expect(result.folder).toBe(written);
    const config = readPrototxt(readFileSync(join(written, "config.pbtxt"), "utf8"));
    expect(config).toMatchObject({ name: "digits", maxBatchSize: 8 });
    expect(readFileSync(join(written, "labels.txt"), "utf8").split("\n")[3]).toBe("digit 3");
    // The samples of the folder get their answers from a server that loads it.
    await using triton = new Triton({
      logInfo: false,
      extensions: [repository({ modelRepository: join(exportPath, "models") })],
    });
    await triton.ready();
    const { data, validation_data: answers } = JSON.parse(
      readFileSync(join(written, "samples.json"), "utf8"),
    );
    const floats = (b64: string) => new Float32Array(new Uint8Array(Buffer.from(b64, "base64")).buffer);
    const { scores } = await triton.infer("digits", { pixels: [[...floats(data[0].pixels.b64)]] });
    expect([...scores!.data]).toEqual([...floats(answers[0].scores.b64)]);
  });

  it("never chooses dynamic int8 for a network with an outlier channel, and names the layer that it ruins", async () => {
    const { model, inputData, labels } = outlier;
    const terminal = terminalOf();
    const exportPath = join(folder, "outlier-results");
    const args = [
      model,
      "--input-data",
      inputData,
      "--labels",
      labels,
      "--goal",
      "size",
      "-p",
      "60",
      "-e",
      exportPath,
    ];
    expect(await optimizeCommand([...args, "--forms", "dynamic-int8,static-int8"], terminal)).toBe(0);
    const report = JSON.parse(readFileSync(join(exportPath, "report.json"), "utf8"));
    const ruined = report.variants.find((one: { name: string }) => one.name === "dynamic-int8");
    expect(ruined.fault).toMatch(
      /^accuracy .* points below the original's .*: at most 0\.5 are allowed; layer 'hidden' \(MatMul\) adds most of it$/,
    );
    expect(ruined.worstLayers[0].layer).toBe("hidden");
    expect(report.choice.variant).not.toBe("dynamic-int8");
    // The rest of the network is still quantised.
    const mixed = report.variants.find((one: { name: string }) => one.name === "dynamic-int8-mixed");
    expect(mixed).toMatchObject({ kept: ["hidden"], layers: ["head"] });
    expect(mixed.fault).toBeUndefined();
    const page = readFileSync(join(exportPath, "report.html"), "utf8");
    expect(page).toContain("Layers of dynamic-int8 by error");
    expect(terminal.out.join("")).toContain("Chosen: ");
  });

  it("ends at the first Ctrl-C with its measurements, which --resume continues", async () => {
    const { model, inputData } = plain;
    const exportPath = join(folder, "stopped-results");
    const args = [
      model,
      "--input-data",
      inputData,
      "--forms",
      "clean",
      "-p",
      "60",
      "-e",
      exportPath,
      "--batch-sizes",
      "1,2",
    ];
    let stop = () => {};
    const requested = new Promise<void>((resolve) => {
      stop = resolve;
    });
    const terminal = terminalOf(requested);
    const { writeError } = terminal;
    terminal.writeError = (text) => {
      writeError(text);
      if (text.includes("with 2 rows a request")) stop();
    };
    expect(await optimizeCommand(args, terminal)).toBe(130);
    expect(terminal.errors.at(-1)).toBe(
      `Continue with --resume: ${join(exportPath, "checkpoint.json")} has the measurements.\n`,
    );
    expect(existsSync(join(exportPath, "models"))).toBe(false);
    const { results } = JSON.parse(readFileSync(join(exportPath, "checkpoint.json"), "utf8"));
    expect(results).toHaveLength(2);
    expect(await optimizeCommand([...args, "--resume"], terminalOf())).toBe(0);
    const after = JSON.parse(readFileSync(join(exportPath, "checkpoint.json"), "utf8"));
    // The measurements of the first run come first; those of the final follow.
    const first = after.results
      .slice(0, 2)
      .map(({ rounds, ...one }: { rounds?: unknown[]; runs: unknown }) => ({
        ...one,
        runs: rounds?.[0] ?? one.runs,
      }));
    expect(first).toEqual(results);
    expect(after.results).toHaveLength(4);
    // Measurements of another file are refused.
    const fault = terminalOf();
    const others = [outlier.model, "--input-data", outlier.inputData, ...args.slice(3), "--resume"];
    expect(await optimizeCommand(others, fault)).toBe(99);
    expect(fault.errors.at(-1)).toContain("expected measurements of the same models and load");
  });

  it("serves a network that has an input of nothing but rows, from samples of its own folder", async () => {
    const model = join(repositoryRoot, "examples/speech-recognition/models/encoder/1/encoder.onnx");
    const exportPath = join(folder, "rows-results");
    const options = {
      model,
      exportPath,
      variants: ["dynamic-int8"] as const,
      intervalMs: 30,
      batchSizes: [1, 2],
    };
    const { folder: written } = await optimize({ ...options, shapes: { speech: [67, 80] }, count: 2 });
    const samples = join(written!, "samples.json");
    const again = await optimize({
      ...options,
      inputData: [samples],
      exportPath: join(folder, "rows-again"),
    });
    expect(again.samples).toEqual({ count: 2, isGenerated: false, hasLabels: false });
  });

  it("serves a form without ONNX Runtime's memory arena if that is the one within the limits", async () => {
    const { model } = plain;
    const exportPath = join(folder, "memory-results");
    const options = { model, exportPath, variants: ["clean"] as const, intervalMs: 30, batchSizes: [1] };
    const { variants, folder: written } = await optimize({ ...options, lowMemory: true, goal: "latency" });
    expect(variants.map(({ name }) => name)).toEqual([
      "original",
      "clean",
      "original-low-memory",
      "clean-low-memory",
    ]);
    expect(variants.every(({ runs }) => runs.length > 0)).toBe(true);
    expect(readdirSync(written!)).toContain("config.pbtxt");
    const none = optimize({ ...options, exportPath: join(folder, "memory-none"), maxMemoryMb: 1 });
    expect((await none).choice).toBeUndefined();
  });

  it("replaces the model of an earlier run only when the new one is complete", async () => {
    const { model } = plain;
    const exportPath = join(folder, "again-results");
    const options = { model, exportPath, variants: ["clean"] as const, intervalMs: 30, batchSizes: [1] };
    const { folder: written } = await optimize(options);
    const before = statSync(join(written!, "1", "model.onnx")).ino;
    cpSync(written!, join(folder, "kept"), { recursive: true });
    await optimize({ ...options, variants: ["dynamic-int8"], goal: "size" });
    expect(statSync(join(written!, "1", "model.onnx")).ino).not.toBe(before);
    expect(readdirSync(join(written!, "1"))).toEqual(["model.onnx"]);
  });
});
