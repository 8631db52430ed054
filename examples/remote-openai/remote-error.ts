import { TritonError } from "@tritonjs/core";

/** The error of a remote server that answered with an error status. */
export async function remoteError(response: Response): Promise<TritonError> {
  const message = `the remote server answered ${response.status}: ${await messageOf(response)}`;
  switch (response.status) {
    case 400:
    case 413:
    case 422:
      return new TritonError("INVALID_ARG", message);
    case 404:
      return new TritonError("NOT_FOUND", message);
    case 408:
    case 429:
    case 502:
    case 503:
    case 504:
      return new TritonError("UNAVAILABLE", message, { retryAfterMs: retryAfterMs(response.headers) });
    default:
      // Also 401 and 403: our key is refused, which is not the fault of our client.
      return new TritonError("INTERNAL", message);
  }
}

/** The message of OpenAI's error object, else the beginning of the body. */
async function messageOf(response: Response): Promise<string> {
  const text = await response.text().catch(() => "");
  try {
    return String(JSON.parse(text).error.message);
  } catch {
    return text.slice(0, 200) || response.statusText;
  }
}

function retryAfterMs(headers: Headers): number {
  const milliseconds = Number(headers.get("retry-after-ms") ?? Number.NaN);
  if (milliseconds > 0) return milliseconds;
  const seconds = Number(headers.get("retry-after") ?? Number.NaN);
  return seconds > 0 ? seconds * 1000 : 1000;
}
