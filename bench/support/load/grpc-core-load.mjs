import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "../../../scripts/run.mjs";
import { isInstalled, outputOf } from "./tools.mjs";

const source = join(root, "bench", "programs", "grpc-core-client.cc");
const folder = join(root, "node_modules", ".cache", "bench");
const program = join(folder, "grpc-core-client");

/** Whether the C++ client can be built here (Debian: `g++`, `pkg-config`, `libgrpc++-dev`). */
export const hasGrpcCore = () =>
  isInstalled("g++") &&
  isInstalled("pkg-config") &&
  spawnSync("pkg-config", ["--exists", "grpc++", "protobuf"]).status === 0;

/** Calls `ModelInfer` with the C++ client of gRPC, `streams` at a time on each connection. */
export async function grpcCoreLoad({ url, message }, { connections, streams }, seconds) {
  await build();
  const files = mkdtempSync(join(tmpdir(), "tritonjs-bench-"));
  try {
    const file = join(files, "message");
    writeFileSync(file, message);
    const method = "/inference.GRPCInferenceService/ModelInfer";
    const numbers = [connections, streams, seconds].map(String);
    const result = JSON.parse(await outputOf(program, [url, method, file, ...numbers]));
    if (result.errors > 0) throw new Error(`the load failed: ${JSON.stringify(result)}`);
    return result;
  } finally {
    rmSync(files, { recursive: true });
  }
}

async function build() {
  if (existsSync(program) && statSync(program).mtimeMs > statSync(source).mtimeMs) return;
  mkdirSync(folder, { recursive: true });
  const flags = (await outputOf("pkg-config", ["--cflags", "--libs", "grpc++", "protobuf"]))
    .trim()
    .split(/\s+/);
  await outputOf("g++", ["-O2", "-std=c++17", source, "-o", program, ...flags]);
}
