import type { ImageFormat } from "./image-options.js";

/**
 * Recognizes the encoding of an image by its first bytes. Only files that it recognizes reach the decoder, which reads
 * further formats, SVG among them.
 *
 * @returns undefined for anything else
 */
export function imageFormatOf(file: Uint8Array): ImageFormat | undefined {
  if (file.length < 12) return undefined;
  if (file[0] === 0xff && file[1] === 0xd8 && file[2] === 0xff) return "jpeg";
  const first = latin1(file, 0, 4);
  if (first === "\x89PNG") return "png";
  if (first === "GIF8") return "gif";
  if (first === "RIFF" && latin1(file, 8, 12) === "WEBP") return "webp";
  if (first === "II*\0" || first === "MM\0*" || first === "II+\0" || first === "MM\0+") return "tiff";
  if (latin1(file, 4, 8) === "ftyp" && /^avi[fs]|^mif1|^miaf/.test(latin1(file, 8, 12))) return "avif";
  return undefined;
}

function latin1(file: Uint8Array, from: number, to: number): string {
  return String.fromCharCode(...file.subarray(from, to));
}
