import type { Readable } from "node:stream";

/** A file in a cloud. */
export interface CloudObject {
  readonly key: string;
  readonly sizeBytes: number;
  /** Changes with the contents. */
  readonly etag: string;
  /** True for an object that represents a folder. Some tools write such objects. */
  readonly isFolder: boolean;
}

/** A page of the objects under a prefix. */
export interface CloudPage {
  readonly objects: readonly CloudObject[];
  /** Prefixes that end at the next slash; empty unless `byFolder` is set. */
  readonly folders: readonly string[];
  /** Token of the next page; undefined for the last page. */
  readonly next: string | undefined;
}

/** Options of a listing. */
export interface ListOptions {
  /** Groups the keys by the next slash after the prefix. */
  readonly byFolder: boolean;
  /** Token of the page: `next` of the previous page. */
  readonly from: string | undefined;
  readonly signal: AbortSignal;
}

/** A bucket of a vendor. Its methods throw the errors of the SDK. */
export interface CloudStorage {
  list(prefix: string, options: ListOptions): Promise<CloudPage>;
  /** Reads the contents of an object. Fails with status 404 or 412 when the object has changed. */
  download(object: CloudObject, signal: AbortSignal): Promise<Readable>;
  close(): void;
}
