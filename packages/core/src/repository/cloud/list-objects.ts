import { TritonError } from "@tritonjs/protocol";
import { cloudError } from "./cloud-error.js";
import type { CloudPath } from "./cloud-path.js";
import type { CloudObject, CloudStorage } from "./cloud-storage.js";
import { type Patience, withSilenceLimit } from "./silence-limit.js";

/** No repository has more files: a path was given that is none. */
const MAX_OBJECTS = 1_000_000;

/** What there is under a prefix. */
export interface Listing {
  readonly objects: readonly CloudObject[];
  readonly folders: readonly string[];
}

/**
 * All objects under a prefix; with `byFolder` those up to the next slash, and what is behind it as folders.
 *
 * @throws TritonError INTERNAL with Triton's text when it cannot be read, UNAVAILABLE when it is given up
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

/** A key as a path in the cloud. */
export function shownKey({ text, prefix }: CloudPath, key: string): string {
  const bucket = text.slice(0, text.length + 1 - prefix.length);
  return `${prefix === "" ? `${text}/` : bucket}${key}`.replace(/\/$/, "");
}
