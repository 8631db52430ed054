/** A curl line of a document, and the result that the line below it promises. */
export interface CurlLine {
  readonly line: string;
  readonly status: number;
  /** Part of the body. */
  readonly text: string;
  /** Port in the line; `""` without one. */
  readonly port: string;
  readonly path: string;
  readonly init: RequestInit;
}

/** The curl lines of a text for a port of this machine, each with a line `# 200 part of the body` below it. */
export function curlLines(text: string): CurlLine[] {
  return [...text.matchAll(/^(curl .*)\n(# \d+.*)$/gm)].map(([, line, promise]) => readCurl(line!, promise!));
}

function readCurl(line: string, promise: string): CurlLine {
  const words = [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare!);
  const headers: Record<string, string> = {};
  let method: string | undefined;
  let body: string | undefined;
  let port = "";
  let path = "";
  for (let i = 1; i < words.length; i++) {
    if (words[i] === "-d") body = words[++i];
    else if (words[i] === "-X") method = words[++i];
    else if (words[i] === "-H") {
      const [name, value] = words[++i]!.split(": ");
      headers[name!] = value!;
    } else [, port = "", path = ""] = /^localhost:(\d+)(.*)$/.exec(words[i]!) ?? [];
  }
  const [, status, text] = /^# (\d+) ?(.*)$/.exec(promise)!;
  const init = { method: method ?? (body === undefined ? "GET" : "POST"), headers, body };
  return { line, status: Number(status), text: text!, port, path, init };
}
