import type { V2Request } from "@tritonjs/http/frontend";

/** Method, path and headers that a request gets before the v2 routes answer it. */
export interface Rewriting {
  readonly method: string;
  /** The path, which begins with `/v2`. */
  readonly path: string;
  /** Names and values in turn; those of the client unless given. */
  readonly rawHeaders?: readonly string[];
}

/** A request under another method, path and headers. Its body stays where it is. */
export class RewrittenRequest implements V2Request {
  readonly method: string;
  readonly path: string;
  readonly rawHeaders: readonly string[];
  readonly #original: V2Request;

  constructor(original: V2Request, { method, path, rawHeaders = original.rawHeaders }: Rewriting) {
    this.#original = original;
    this.method = method;
    this.path = path;
    this.rawHeaders = rawHeaders;
  }

  get scheme(): V2Request["scheme"] {
    return this.#original.scheme;
  }

  get remoteAddress(): string | undefined {
    return this.#original.remoteAddress;
  }

  get gone(): boolean {
    return this.#original.gone;
  }

  get ownsBody(): boolean {
    return this.#original.ownsBody === true;
  }

  readBody(...parameters: Parameters<V2Request["readBody"]>): Promise<Uint8Array> {
    return this.#original.readBody(...parameters);
  }

  onGone(listener: () => void): () => void {
    return this.#original.onGone(listener);
  }

  onSent(listener: () => void): void {
    this.#original.onSent(listener);
  }

  report(error: unknown): void {
    this.#original.report(error);
  }
}
