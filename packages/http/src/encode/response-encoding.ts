import { promisify } from "node:util";
import { deflate as deflateCallback, gzip as gzipCallback } from "node:zlib";

const gzip = promisify(gzipCallback);
const deflate = promisify(deflateCallback);

/** How a response body may be compressed. */
export type ResponseEncoding = "identity" | "gzip" | "deflate";

/**
 * The encoding with the greatest weight in `Accept-Encoding`, the first of equals. Encodings other than identity, gzip
 * and deflate are ignored, as are weights that are not numbers.
 */
export function responseEncoding(header: string | undefined): ResponseEncoding {
  if (header === undefined) return "identity";
  let best: ResponseEncoding = "identity";
  let bestWeight = 0;
  for (const item of header.split(",")) {
    const [, name, weightText] = /^ *(.*?)(?:;q=(.*))?$/s.exec(item)!;
    const weight = weightText === undefined ? 1 : Number.parseFloat(weightText);
    if ((name === "identity" || name === "gzip" || name === "deflate") && weight > bestWeight) {
      best = name;
      bestWeight = weight;
    }
  }
  return best;
}

/** Compresses a response body. */
export function compress(body: Buffer, encoding: Exclude<ResponseEncoding, "identity">): Promise<Buffer> {
  return encoding === "gzip" ? gzip(body) : deflate(body);
}
