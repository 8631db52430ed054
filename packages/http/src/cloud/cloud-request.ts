import { TritonError } from "@tritonjs/protocol";
import type { InferenceService } from "@tritonjs/server";
import { firstHeader, type V2Request } from "../exchange/request.js";
import type { V2Response } from "../exchange/response.js";

/** A request under another method, path and headers. Its body stays where it is. */
export class RewrittenRequest implements V2Request {
  readonly rawHeaders: readonly string[];

  /**
   * @param path path that begins with `/v2`
   * @param rawHeaders names and values in turn
   */
  constructor(
    private readonly original: V2Request,
    readonly method: string,
    readonly path: string,
    rawHeaders = original.rawHeaders,
  ) {
    this.rawHeaders = rawHeaders;
  }

  get scheme(): V2Request["scheme"] {
    return this.original.scheme;
  }

  get remoteAddress(): string | undefined {
    return this.original.remoteAddress;
  }

  get gone(): boolean {
    return this.original.gone;
  }

  get ownsBody(): boolean {
    return this.original.ownsBody === true;
  }

  header(name: string): string | undefined {
    return firstHeader(this, name);
  }

  readBody(...parameters: Parameters<V2Request["readBody"]>): Promise<Uint8Array> {
    return this.original.readBody(...parameters);
  }

  onGone(listener: () => void): () => void {
    return this.original.onGone(listener);
  }

  onSent(listener: () => void): void {
    this.original.onSent(listener);
  }

  report(error: unknown): void {
    this.original.report(error);
  }
}

const LENGTH_HEADER = "inference-header-content-length";

/**
 * The form of binary tensors behind a platform that passes on no headers but the content type: the length of the JSON
 * is a parameter of the content type, in requests and in answers.
 */
export class BinaryContentType {
  readonly #prefix: string;

  /**
   * @param type media type, such as `application/vnd.sagemaker-triton.binary+json`
   * @param keepsHeader whether answers have the header of the v2 protocol too
   */
  constructor(
    type: string,
    private readonly keepsHeader = false,
  ) {
    this.#prefix = `${type};json-header-size=`;
  }

  /**
   * The headers of a request as the v2 routes know them. The answer is not compressed, as in Triton.
   *
   * @throws TritonError INVALID_ARG for a content type whose size cannot be read.
   */
  headersOf(request: V2Request): readonly string[] {
    const contentType = firstHeader(request, "content-type") ?? "";
    const headers: string[] = [];
    for (let i = 0; i < request.rawHeaders.length; i += 2) {
      const name = request.rawHeaders[i]!;
      if (!/^(accept-encoding|inference-header-content-length)$/i.test(name)) {
        headers.push(name, request.rawHeaders[i + 1]!);
      }
    }
    const at = contentType.indexOf(this.#prefix);
    if (at < 0) return headers;
    return [...headers, "Inference-Header-Content-Length", this.#sizeIn(contentType, at)];
  }

  /** The answer with the length of its JSON in the content type. */
  typed(response: V2Response): V2Response {
    const { [LENGTH_HEADER]: length, ...headers } = response.headers;
    if (length === undefined) return response;
    const kept = this.keepsHeader ? response.headers : headers;
    return { ...response, headers: { ...kept, "content-type": `${this.#prefix}${length}` } };
  }

  #sizeIn(contentType: string, at: number): string {
    if (at > 0) {
      throw badSize(`expect MIME type for binary data starts with '${this.#prefix}', got: ${contentType}`);
    }
    const text = contentType.slice(this.#prefix.length);
    const [, digits] = /^\s*([+-]?\d+)/.exec(text) ?? [];
    if (digits === undefined) throw badSize(`Unable to parse inference header size, got: ${text}`);
    const size = Number(digits);
    if (size > 2 ** 31 - 1) {
      throw badSize(`Unable to parse inference header size, value is out of range, got: ${text}`);
    }
    if (size < 0) throw badSize(`inference header size should be in range (0, body size), got: ${text}`);
    return String(size);
  }
}

function badSize(text: string): TritonError {
  return new TritonError("INVALID_ARG", text);
}

/** Names of the models in service, and the only one if there is exactly one. */
export async function readyModels(
  service: InferenceService,
): Promise<{ readonly names: readonly string[]; readonly only: string | undefined }> {
  const names = [...new Set((await service.repositoryIndex(true)).map(({ name }) => name))];
  return { names, only: names.length === 1 ? names[0] : undefined };
}
