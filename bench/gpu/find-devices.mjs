import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";

/** Describes the graphics hardware of this machine; empty if none is found. */
export function graphicsHardware() {
  const { status, stdout } = spawnSync(
    "nvidia-smi",
    ["--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"],
    { encoding: "utf8", timeout: 15_000 },
  );
  if (status === 0 && stdout.trim() !== "") return stdout.trim().split("\n").join("; ");
  if (process.platform === "darwin" || process.platform === "win32") return "the GPU of this machine";
  const nodes = existsSync("/dev/dri") ? readdirSync("/dev/dri") : [];
  const rendering = nodes.filter((name) => name.startsWith("renderD"));
  return rendering.length === 0 ? "" : `DRM devices ${rendering.join(", ")}`;
}
