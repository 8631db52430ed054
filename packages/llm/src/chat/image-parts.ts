import { errorFor, type TritonError } from "@tritonjs/protocol";

/** Part of a message's content: a text, or an image for a model that takes images. */
export interface ChatContentPart {
  /** Kind of the part: `text`, or `image_url` or `image` for an image. */
  readonly type: string;
  /** Text of the part. */
  readonly text?: string;
  /** Address of an image, as in OpenAI's API: a data URL. */
  readonly image_url?: string | { readonly url: string; readonly detail?: string };
  /** Address of an image, as transformers has it. */
  readonly image?: string;
  readonly url?: string;
}

/** Messages, as far as images are concerned. */
type Messages = readonly { readonly content?: unknown }[];

/** An image of a chat, and its place in the messages for errors. */
export interface ChatImage {
  readonly path: string;
  readonly file: Uint8Array;
}

/** True for the parts of a message that are images: `image_url` of OpenAI, and `image` of transformers. */
export function isImagePart({ type }: ChatContentPart): boolean {
  return type === "image_url" || type === "image";
}

/** Address of an image part; undefined for a part without one. */
export function imageUrlOf({ image_url, image, url }: ChatContentPart): string | undefined {
  const given = typeof image_url === "object" ? image_url?.url : (image_url ?? image ?? url);
  return typeof given === "string" ? given : undefined;
}

/** The image parts of a chat in their order, each with its place. */
export function imageParts(
  messages: Messages,
): readonly { readonly path: string; readonly part: ChatContentPart }[] {
  return messages.flatMap(({ content }, index) => {
    if (!Array.isArray(content)) return [];
    return (content as readonly ChatContentPart[]).flatMap((part, i) =>
      isImagePart(part) ? [{ path: `messages[${index}].content[${i}]`, part }] : [],
    );
  });
}

/**
 * Reads the images of a chat, which have to be in the messages themselves.
 *
 * @throws TritonError INVALID_ARG for a part without a data URL in base64
 */
export function chatImages(messages: Messages): readonly ChatImage[] {
  return imageParts(messages).map(({ path, part }) => {
    const url = imageUrlOf(part);
    const file = url === undefined ? undefined : dataOf(url);
    if (file !== undefined) return { path, file };
    const got = url === undefined ? "none" : shortened(url);
    throw invalidImage(path, "a data: URL with base64, such as data:image/png;base64,iVBORw0KGgo=", got);
  });
}

/** Bytes of a data URL in base64; undefined for any other text. */
function dataOf(url: string): Uint8Array | undefined {
  const comma = url.indexOf(",");
  if (comma < 0 || !/^data:[^,]*;base64$/i.test(url.slice(0, comma))) return undefined;
  return Buffer.from(url.slice(comma + 1), "base64");
}

/** Creates the error for an image of a request. */
export function invalidImage(path: string, expected: string, got: string): TritonError {
  return errorFor("INVALID_INPUT", `'${path}': expected ${expected}, got ${got}`);
}

const LONGEST_SHOWN = 60;

function shortened(text: string): string {
  return JSON.stringify(text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN)}...` : text);
}
