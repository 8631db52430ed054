import { bytesSource, fileSource } from "./byte-source.js";

/** Bytes at the beginning of a file that tell what it is. */
const HEAD_BYTES = 512;

/** A kind of file that is mistaken for a model. */
interface FileKind {
  /** Characters that such a file has at `at`, in lower case. */
  readonly begins: readonly string[];
  readonly at?: number;
  readonly what: string;
}

const KINDS: readonly FileKind[] = [
  {
    begins: ["version https://git-lfs.github.com"],
    what: "it is a Git LFS pointer instead of the model: fetch the model with `git lfs pull`",
  },
  {
    begins: ["<!doctype html", "<html", "<?xml"],
    what: "it is an HTML page, probably the answer to a failed download",
  },
  { begins: ["\u001f\u008b"], what: "it is compressed with gzip: unpack it first" },
  {
    begins: ["pk\u0003\u0004"],
    what: "it is a ZIP archive, perhaps a PyTorch checkpoint: export the model to ONNX",
  },
  { begins: ["\u0089hdf"], what: "it is an HDF5 file, perhaps of Keras: convert the model to ONNX" },
  { begins: ["tfl3"], at: 4, what: "it is a TensorFlow Lite model: convert the model to ONNX" },
  { begins: ["ortm"], at: 4, what: "it is a model in ORT format: give the .onnx file that it was made from" },
];

/**
 * Describes a file that is not an ONNX model by what it looks like.
 *
 * @param fault why it cannot be read as a model
 */
export function describeNotOnnx(model: string | Uint8Array, fault: string): string {
  const source = typeof model === "string" ? fileSource(model) : bytesSource(model);
  try {
    if (source.length === 0) return "it is empty";
    const head = source.read(0, HEAD_BYTES).slice(0, HEAD_BYTES);
    const text = String.fromCharCode(...head);
    const known = kindOf(text);
    if (known !== undefined) return known.what;
    if (isText(text)) return `it is a text file that begins with '${firstLine(text)}'`;
    // A model begins with its field `ir_version`.
    const cut = head[0] === 0x08 && /^invalid (?:length|number)/.test(fault);
    return cut ? `it is cut off after ${source.length} bytes: ${fault}` : fault;
  } finally {
    source.close();
  }
}

function kindOf(head: string): FileKind | undefined {
  const lower = head.toLowerCase();
  const page = lower.trimStart();
  return KINDS.find(({ begins, at = 0 }) =>
    begins.some((start) => lower.startsWith(start, at) || (at === 0 && page.startsWith(start))),
  );
}

function isText(head: string): boolean {
  return /^[\s -~]+$/.test(head);
}

const LINE_LENGTH = 40;

function firstLine(text: string): string {
  const line = text.trimStart().split(/\r?\n/, 1)[0]!;
  return line.length > LINE_LENGTH ? `${line.slice(0, LINE_LENGTH)}...` : line;
}
