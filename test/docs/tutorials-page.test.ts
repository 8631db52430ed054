import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import { describe, expect, it } from "vitest";
import { repositoryRoot } from "../support/repository.js";
import { RepositoryOnDisk } from "../support/repository-on-disk.js";
import { tutorialPage, tutorialRows } from "./tutorials-table.js";

/** SHA-256 of the configurations of the tutorials, which are not edited. */
const CONFIGURATIONS: Readonly<Record<string, string>> = {
  attention_rescoring: "d33634b74be8ff45d0171d6d0c4da1620372207d8462374827a91a929d119228",
  decoder: "bdceb8c3a05cbd3b0b7499567b9eaa979bcd1ee2657f4713daf5f45c25e5b695",
  encoder: "089e1351e7c53ff0fa67f844c43724e972a7258cef162840560678709d00e6e1",
  ensemble_model: "2a05e4cc1bd361e4b241f187dc7f959fe36aa416c1239921c9e6c4df5ce7a4a2",
  feature_extractor: "6e9b53531d7da855ba09ef24145eb7df18f0f6659dfc36409c657f0986e0431f",
  resnet50: "df5bec97d30e4404c876fe669350fe7f0599b800957ced6ec066d8700ef0ee6a",
  resnet50_dali: "600b1f7b680a7eabf6584e10797713aa0333d460dec53c29f4134ee45386a823",
  resnet50_ensemble: "6f2142e4c57e50b3c8d088e2ebb26fda996020942d7317bd3d2c9d44886a1c68",
  resnet_classification: "2a12bc82c9d0841695eb1e43948ba8f280b0614dd4ac76f26a689d8e2b8ff93b",
  scoring: "20581d3951a159f2ef44826ecacedcc562895821e592a6774d0aebb2306d208f",
  text_detection: "b87da652a499e3040a8a184514e77b471362a67e67bd92b4bd08f81ad46af632",
};

describe("docs/tutorials.md", () => {
  it("has twenty programs in their order, each with a command, and a proof that exists", () => {
    const rows = tutorialRows();
    expect(rows.map(({ number }) => number)).toEqual(Array.from({ length: 20 }, (_, i) => i + 1));
    for (const { program, commands, cells } of rows) {
      const [, , steps, command, proof] = cells as [string, string, string, string, string];
      expect(cells, program).toHaveLength(5);
      expect(steps.length, program).toBeGreaterThan(10);
      expect(command, program).toMatch(/^`[^`]+`(?:; `[^`]+`)*$/);
      for (const { example } of commands) {
        expect(existsSync(join(repositoryRoot, "examples", example, "package.json")), example).toBe(true);
      }
      const links = [...proof.matchAll(/\]\(([^)#]+)/g)].map(([, target]) => join("docs", target!));
      expect(links.length, program).toBeGreaterThan(0);
      expect(links.filter((target) => !existsSync(join(repositoryRoot, target)))).toEqual([]);
      // Commands of other forms are run by a test of their own, which the row links.
      const folders = [...command.matchAll(/examples\/tutorials\/([\w-]+)\//g)].map(([, folder]) => folder!);
      const tests = links.filter((target) => target.endsWith(".test.ts"));
      const run = tests.map((target) => readFileSync(join(repositoryRoot, target), "utf8")).join("\n");
      expect(
        folders.filter((folder) => !run.includes(folder)),
        program,
      ).toEqual([]);
    }
  });

  it("has the configurations of the tutorials, unchanged", () => {
    for (const [model, hash] of Object.entries(CONFIGURATIONS)) {
      const file = readFileSync(join(repositoryRoot, "examples/tutorials/models", model, "config.pbtxt"));
      expect({ model, hash: createHash("sha256").update(file).digest("hex") }).toEqual({ model, hash });
    }
  });
});

/** A model of each backend that cannot run here, and what its reason proposes. */
const REFUSED: readonly (readonly [
  name: string,
  config: string,
  file: string,
  instead: readonly string[],
])[] = [
  ["tensorrt_plan", 'platform: "tensorrt_plan"', "model.plan", ["trtexec --onnx", "onnxruntime"]],
  ["tensorrt", 'backend: "tensorrt"', "model.plan", ["trtexec --onnx", "onnxruntime"]],
  ["dali", 'backend: "dali"', "model.dali", ["image", "substitute"]],
  ["openvino", 'backend: "openvino"', "model.xml", ["ONNX"]],
  ["torch_aoti", 'platform: "torch_aoti"', "model.pt2", ["TorchScript"]],
  ["vllm", 'backend: "vllm"', "model.json", ["vllm serve"]],
  ["tensorrtllm", 'backend: "tensorrtllm"', "model.json", ["trtllm-serve"]],
  ["mxnet", 'backend: "mxnet"', "model.params", ["mxnet.onnx.export_model"]],
  ["inferentia", 'backend: "inferentia"', "model.pt", ["ONNX"]],
  ["armnn_tflite", 'backend: "armnn_tflite"', "model.tflite", ["tf2onnx"]],
  ["paddle", 'backend: "paddle"', "model.pdmodel", ["paddle2onnx"]],
  ["caffe2_netdef", 'platform: "caffe2_netdef"', "model.netdef", ["PyTorch", "ONNX"]],
];

describe("a model that cannot run here", () => {
  it.each(REFUSED)(
    "for %s is refused by name, with what to do instead",
    async (name, config, file, instead) => {
      await using models = await RepositoryOnDisk.create({
        "m/config.pbtxt": `${config}
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]`,
        [`m/1/${file}`]: "weights",
      });
      const logger = { error() {}, warn() {}, info() {}, debug() {} };
      await using triton = new Triton({ modelRepository: models.path, exitOnError: false, logger });
      await triton.ready();
      const [row] = await triton.service.repositoryIndex(false);
      expect(row).toMatchObject({ name: "m", state: "UNAVAILABLE" });
      for (const text of [name.split("_")[0]!, ...instead]) {
        expect(row!.reason!.toLowerCase()).toContain(text.toLowerCase());
      }
      expect(tutorialPage()).toContain(`\`${name}\``);
    },
  );
});
