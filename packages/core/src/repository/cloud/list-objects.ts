import { TritonError } from "@tritonjs/protocol";
import { cloudError } from "./cloud-error.js";
import type { CloudPath } from "./cloud-path.js";
import type { CloudObject, CloudStorage } from "./cloud-storage.js";
import { type Patience, withSilenceLimit } from "./silence-limit.js";

/** Limit on the files of a repository. A path with more files is not a repository. */
export const MAX_OBJECTS = 1_000_000;

/** The objects and folders under a prefix. */
export interface Listing {
  readonly objects: readonly CloudObject[];
  readonly folders: readonly string[];
}

/**
 * Lists all objects under a prefix. With `byFolder` it lists those up to the next slash, and the rest as folders.
 *
 * @throws TritonError INTERNAL with Triton's text when the prefix cannot be read, UNAVAILABLE when cancelled
 */
export async function listObjects(
  storage: CloudStorage,
  path: CloudPath,
  prefix: string,
  patience: Patience,
  byFolder = false,
): Promise<Listing> {
  const objects: CloudObject[] = [];
  const folders: string[] = [];
  const shown = shownKey(path, prefix);
  let from: string | undefined;
  try {
    do {
      const page = await withSilenceLimit(patience, (signal) =>
        storage.list(prefix, { byFolder, from, signal }),
      );
      objects.push(...page.objects);
      folders.push(...page.folders);
      from = page.next;
      if (objects.length > MAX_OBJECTS) {
        throw new TritonError(
          "INVALID_ARG",
          `cannot list ${shown}: expected at most ${MAX_OBJECTS} objects, got more`,
          {
            reason: "INVALID_REPOSITORY",
          },
        );
      }
    } while (from !== undefined);
  } catch (error) {
    throw cloudError(`Could not list contents of directory at ${shown}`, error);
  }
  return { objects, folders };
}

/** Formats a key as a path in the cloud. */
export function shownKey({ text, prefix }: CloudPath, key: string): string {
  const bucket = text.slice(0, text.length + 1 - prefix.length);
  return `${prefix === "" ? `${text}/` : bucket}${key}`.replace(/\/$/, "");
}
