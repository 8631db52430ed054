import type { Readable } from "node:stream";

/** A file in a cloud. */
export interface CloudObject {
  readonly key: string;
  readonly sizeBytes: number;
  /** Another one for other contents. */
  readonly etag: string;
  /** True for an object that stands for a folder, which some tools write. */
  readonly isFolder: boolean;
}

/** Some of the objects under a prefix. */
export interface CloudPage {
  readonly objects: readonly CloudObject[];
  /** Prefixes that end at the next slash, when those were asked for. */
  readonly folders: readonly string[];
  /** Where the next page begins; undefined for the last one. */
  readonly next: string | undefined;
}

/** What is asked of a storage. */
export interface ListOptions {
  /** Puts together what is behind the next slash of the prefix. */
  readonly byFolder: boolean;
  /** Where the page begins: `next` of the one before. */
  readonly from: string | undefined;
  readonly signal: AbortSignal;
}

/** A bucket of a vendor. What its methods throw is the error of the SDK. */
export interface CloudStorage {
  list(prefix: string, options: ListOptions): Promise<CloudPage>;
  /** The contents of an object, unless it is another one by now: that fails, with status 404 or 412. */
  download(object: CloudObject, signal: AbortSignal): Promise<Readable>;
  close(): void;
}
