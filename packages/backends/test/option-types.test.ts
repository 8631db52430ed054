import { grpc } from "@tritonjs/grpc";
import { http, metrics } from "@tritonjs/http";
import { openai } from "@tritonjs/llm/openai";
import { expect, it } from "vitest";
import { audio, image } from "../src/media/index.js";
import { onnxruntime } from "../src/onnxruntime/index.js";
import { python } from "../src/python/index.js";
import { remote } from "../src/remote/index.js";
import { tensorflow } from "../src/tensorflow/index.js";
import { trees } from "../src/trees/index.js";

/* The compiler reports these mistakes. Callers without TypeScript get the texts. */

const factories: Readonly<Record<string, (options: never) => unknown>> = {
  audio,
  grpc,
  http,
  image,
  metrics,
  onnxruntime,
  openai,
  python,
  remote,
  tensorflow,
  trees,
};

it.each<[string, unknown, string]>([
  [
    "onnxruntime",
    { model: "m.onnx", intraOpThreads: 2 },
    "onnxruntime() has an unknown option 'intraOpThreads': did you mean 'intraOpNumThreads'?",
  ],
  ["onnxruntime", { model: 5 }, "onnxruntime(), option 'model': expected an object or a string, got 5"],
  [
    "onnxruntime",
    "x.onnx",
    "onnxruntime(): expected an object of options such as { model: ... }, got the string 'x.onnx'",
  ],
  [
    "onnxruntime",
    undefined,
    "onnxruntime(): expected an object of options such as { model: ... }, got undefined",
  ],
  ["python", { modle: "model.py" }, "python() has an unknown option 'modle': did you mean 'model'?"],
  [
    "tensorflow",
    { model: "m.json", runtimes: "tfjs" },
    "tensorflow() has an unknown option 'runtimes': did you mean 'runtime'?",
  ],
  [
    "trees",
    { model: "m.json", predictProba: "yes" },
    "trees(), option 'predictProba': expected a boolean, got the string 'yes'",
  ],
  ["audio", { mel: 80 }, "audio() has an unknown option 'mel': did you mean 'mels'?"],
  ["image", { widht: 224, height: 224 }, "image() has an unknown option 'widht': did you mean 'width'?"],
  [
    "remote",
    { url: "localhost:8001", model: "m" },
    "remote() has an unknown option 'url': did you mean 'urls'?",
  ],
  ["http", { port: "8000" }, "http(), option 'port': expected a number, got the string '8000'"],
  [
    "http",
    { limits: { maxHeaderSize: "5" } },
    "http({ limits }), option 'maxHeaderSize': expected a number, got the string '5'",
  ],
  ["grpc", { port: "8001" }, "grpc(), option 'port': expected a number, got the string '8001'"],
  ["metrics", { prot: 8002 }, "metrics() has an unknown option 'prot': did you mean 'port'?"],
  ["openai", { port: "9000" }, "openai(), option 'port': expected a number, got the string '9000'"],
])("%s(%o) names the option", async (name, options, message) => {
  const call = async () => await factories[name]!(options as never);
  await expect(call()).rejects.toThrow(
    expect.objectContaining({ code: "INVALID_ARG", reason: "INVALID_OPTION", message }),
  );
});
