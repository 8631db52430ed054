import type { FuzzTarget, OpenTarget } from "../engine/target.js";

/** All targets. A target is loaded when it is used: the coverage then has no other code. */
const TARGETS: Readonly<Record<string, () => Promise<{ readonly open: OpenTarget }>>> = {
  http: () => import("./http.js"),
  "grpc-frames": () => import("./grpc-frames.js"),
  "grpc-readers": () => import("./grpc-readers.js"),
  "grpc-messages": () => import("./grpc-messages.js"),
  "in-process": () => import("./in-process.js"),
  tensors: () => import("./tensors.js"),
  generate: () => import("./generate.js"),
  control: () => import("./control.js"),
  repository: () => import("./repository.js"),
  "shared-memory": () => import("./shared-memory.js"),
  openai: () => import("./openai.js"),
  dashboard: () => import("./dashboard.js"),
  prototxt: () => import("./prototxt.js"),
  "config-json": () => import("./config-json.js"),
  onnx: () => import("./onnx.js"),
  trees: () => import("./trees.js"),
  "trace-file": () => import("./trace-file.js"),
  tokenizer: () => import("./tokenizer.js"),
  "chat-template": () => import("./chat-template.js"),
  wav: () => import("./wav.js"),
  image: () => import("./image.js"),
};

export const targetNames: readonly string[] = Object.keys(TARGETS);

/** Starts a target. @throws Error for an unknown name */
export async function openTarget(name: string): Promise<FuzzTarget> {
  const load = TARGETS[name];
  if (load === undefined) throw new Error(`unknown target: ${name}`);
  const { open } = await load();
  return open();
}
