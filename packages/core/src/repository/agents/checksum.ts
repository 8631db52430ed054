import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { TritonError } from "@tritonjs/protocol";
import { assertInside, isInside } from "../../files/path-containment.js";
import type { RepositoryAgent } from "./repository-agent.js";

/** Algorithms by their names in parameters. */
const ALGORITHMS: Readonly<Record<string, { readonly name: string; readonly digest: string }>> = {
  md5: { name: "MD5", digest: "md5" },
  sha256: { name: "SHA256", digest: "sha256" },
  "sha-256": { name: "SHA256", digest: "sha256" },
};

/**
 * The agent `checksum`: refuses to load a model whose files have changed. Its parameters are files with their hashes:
 * `key: "MD5:1/model.onnx" value: "..."`, or `SHA256:`.
 */
export const checksum: RepositoryAgent = async (action, { location, parameters }) => {
  if (action !== "LOAD") return;
  for (const [key, expected] of Object.entries(parameters)) {
    const colon = key.indexOf(":");
    if (colon < 0)
      throw new TritonError("INVALID_ARG", `failed to parse key: ${key}`, { reason: "INVALID_CONFIG" });
    const algorithm = ALGORITHMS[key.slice(0, colon).toLowerCase()];
    if (algorithm === undefined) {
      throw new TritonError("UNSUPPORTED", `Unsupported checksum algorithm: ${key.slice(0, colon)}`);
    }
    const file = key.slice(colon + 1);
    const got = await hashOf(location, file, algorithm.digest);
    if (got !== expected.toLowerCase()) {
      throw new TritonError(
        "INVALID_ARG",
        `Mismatched ${algorithm.name} hash for file ${file}, expect: ${expected}, got: ${got}`,
        { reason: "INVALID_MODEL" },
      );
    }
  }
};

async function hashOf(location: string, file: string, digest: string): Promise<string> {
  const path = join(location, file);
  if (!isInside(location, path)) {
    throw new TritonError(
      "INVALID_ARG",
      `checksum of ${file}: expected a path inside the model's directory`,
      {
        reason: "PATH_NOT_ALLOWED",
      },
    );
  }
  await assertInside(location, path);
  const hash = createHash(digest);
  try {
    await pipeline(createReadStream(path), hash);
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const why = code === "ENOENT" ? "No such file or directory" : message;
    throw new TritonError("INVALID_ARG", `failed to open text file for read ${file}: ${why}`, {
      reason: "INVALID_MODEL",
      cause,
    });
  }
  return hash.digest("hex");
}
