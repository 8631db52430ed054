import { errorFor } from "@tritonjs/protocol";
import type { ChatContentPart, ChatMessage } from "../chat/chat-template.js";
import { imageParts, imageUrlOf } from "../chat/image-parts.js";
import { invalidField, OpenAiError } from "./openai-error.js";

/** Hosts from which the server fetches the images of chats. */
export interface ImageUrlOptions {
  /**
   * Names of the hosts, each with its port unless that is the usual one: `images.example.com`, `localhost:8080`. An
   * image from any other host is refused, and so is an answer that leads to another address.
   */
  readonly hosts: readonly string[];
  /** Largest size of all images of a request together in bytes; 20 MiB unless given. */
  readonly maxBytes?: number;
  /** Time for an image in milliseconds; 10,000 unless given. */
  readonly timeoutMs?: number;
}

const MAX_BYTES = 20 * 1024 * 1024;
const TIMEOUT_MS = 10_000;
/** Largest number of images of a request that are fetched. Models have lower limits, but only after the fetch. */
const MOST_FETCHED = 100;

/** Images of a chat whose address is not a data URL. Nothing is fetched unless the options name the host. */
export class ImageUrls {
  readonly #hosts: ReadonlySet<string>;
  readonly #maxBytes: number;
  readonly #timeoutMs: number;

  /** @throws TritonError INVALID_ARG for a host that is not one, and for a limit that is not a positive integer */
  constructor(options: ImageUrlOptions | undefined) {
    const { hosts = [], maxBytes = MAX_BYTES, timeoutMs = TIMEOUT_MS } = options ?? {};
    for (const host of hosts) {
      if (URL.canParse(`http://${host}`) && new URL(`http://${host}`).host === host.toLowerCase()) continue;
      const text = `imageUrls.hosts: expected names of hosts such as images.example.com, got ${JSON.stringify(host)}`;
      throw errorFor("INVALID_OPTION", text);
    }
    for (const [name, value] of Object.entries({ maxBytes, timeoutMs })) {
      if (Number.isSafeInteger(value) && value > 0) continue;
      throw errorFor("INVALID_OPTION", `imageUrls.${name}: expected a positive integer, got ${value}`);
    }
    this.#hosts = new Set(hosts.map((host) => host.toLowerCase()));
    this.#maxBytes = maxBytes;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * The messages with data URLs in place of addresses.
   *
   * @throws OpenAiError 400 for an address whose host the options do not name, and for an image that cannot be fetched
   */
  async inline(messages: readonly ChatMessage[], signal: AbortSignal): Promise<readonly ChatMessage[]> {
    const fetched = new Map<ChatContentPart, string>();
    let left = this.#maxBytes;
    const addressed = imageParts(messages).flatMap(({ path, part }) => {
      const url = imageUrlOf(part);
      return url === undefined || /^data:/i.test(url) ? [] : [{ path, part, url }];
    });
    if (addressed.length > MOST_FETCHED) {
      const { path } = addressed[MOST_FETCHED]!;
      throw invalidField(path, `'${path}': expected at most ${MOST_FETCHED} addresses of images, got more`);
    }
    for (const { path, part, url } of addressed) {
      const file = await this.#fetch(url, path, left, signal);
      left -= file.length;
      fetched.set(part, `data:application/octet-stream;base64,${file.toString("base64")}`);
    }
    if (fetched.size === 0) return messages;
    const inlined = (part: ChatContentPart) => {
      const url = fetched.get(part);
      return url === undefined ? part : { type: "image_url", image_url: { url } };
    };
    return messages.map((message) => {
      const { content } = message;
      return Array.isArray(content)
        ? { ...message, content: (content as readonly ChatContentPart[]).map(inlined) }
        : message;
    });
  }

  async #fetch(address: string, path: string, most: number, signal: AbortSignal): Promise<Buffer> {
    const url = URL.canParse(address) ? new URL(address) : undefined;
    const fail = (expected: string, got: string) =>
      invalidField(path, `'${path}': expected ${expected}, got ${got}`, "invalid_image_url");
    if (url === undefined || !/^https?:$/.test(url.protocol) || !this.#hosts.has(url.host)) {
      const hosts =
        this.#hosts.size === 0
          ? "the server fetches no images: openai({ imageUrls: { hosts } }) names the hosts that it may ask"
          : `the server fetches images only from ${[...this.#hosts].join(", ")}`;
      throw fail("a data: URL", `${JSON.stringify(address.slice(0, 100))}; ${hosts}`);
    }
    try {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(this.#timeoutMs)]);
      const response = await fetch(url, { redirect: "error", signal: limit, credentials: "omit" });
      if (!response.ok) throw fail("an image", `status ${response.status} from ${url.host}`);
      const bytes: Uint8Array[] = [];
      let size = 0;
      for await (const chunk of response.body ?? []) {
        size += chunk.byteLength;
        if (size > most) throw fail(`images of at most ${this.#maxBytes} bytes together`, "more");
        bytes.push(chunk);
      }
      return Buffer.concat(bytes);
    } catch (error) {
      if (error instanceof OpenAiError) throw error;
      const { cause, message } = error as Error & { cause?: Error };
      throw fail(`an image from ${url.host}`, cause?.message ?? message);
    }
  }
}

/** Files of the images in a chat in base64, as vLLM's backend for Triton takes them. All of them are in data URLs. */
export function imageTexts(messages: readonly ChatMessage[]): readonly string[] {
  return imageParts(messages).map(({ part }) => {
    const url = imageUrlOf(part) ?? "";
    return url.slice(url.indexOf(",") + 1);
  });
}
