import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { Triton } from "@tritonjs/core";
import { VERSION } from "@tritonjs/core/internal";
import { errorReasons } from "@tritonjs/protocol";
import { repository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { describe, expect, it } from "vitest";
import {
  BUILT_IN,
  BY_PLATFORM,
  CONVERSIONS,
  PACKAGED,
} from "../../packages/repository/src/backends/find-backend.js";
import { repositoryRoot } from "../support/repository.js";
import { RepositoryOnDisk } from "../support/repository-on-disk.js";
import { documents, relativeLinks } from "./markdown.js";
import { tutorialPage, tutorialRows } from "./tutorials-table.js";

describe("the table of backends", () => {
  it("the table of a Triton repository has every backend and platform that the library knows", async () => {
    const page = await readFile(new URL("../../docs/backends.md", import.meta.url), "utf8");
    const [, section = ""] = /## What a Triton repository says\n([\s\S]*?)\n## /.exec(page) ?? [];
    const named = new Set(
      section.split("\n").flatMap((row) => [...row.matchAll(/`(\w+)`/g)].map(([, name]) => name)),
    );
    const known = [BUILT_IN, PACKAGED, BY_PLATFORM, CONVERSIONS].flatMap((table) => Object.keys(table));
    expect(known.filter((name) => !named.has(name))).toEqual([]);
  });
});

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly scripts?: Readonly<Record<string, string>>;
}

function manifest(folder: string): Manifest {
  return JSON.parse(readFileSync(join(repositoryRoot, folder, "package.json"), "utf8"));
}

/** Commands of npm itself. */
const NPM_COMMANDS = ["ci", "exec", "install", "login", "pack", "publish", "rebuild"];

const scripts = manifest(".").scripts ?? {};

const [readme] = documents();

function packageScripts(): string[] {
  const folders = ["packages", "examples"].flatMap((parent) =>
    readdirSync(join(repositoryRoot, parent)).map((name) => join(parent, name)),
  );
  return folders.flatMap((folder) => Object.keys(manifest(folder).scripts ?? {}));
}

describe("references to files", () => {
  it("the README lists every example and every page of docs/", () => {
    const links = new Set(relativeLinks(readme!));
    const examples = readdirSync(join(repositoryRoot, "examples"));
    const pages = readdirSync(join(repositoryRoot, "docs")).filter((name) => name.endsWith(".md"));
    const expected = [...examples.map((name) => `examples/${name}`), ...pages.map((name) => `docs/${name}`)];
    expect(expected.filter((target) => !links.has(target))).toEqual([]);
  });
});

describe("the version", () => {
  it.each([".", ...readdirSync(join(repositoryRoot, "packages")).map((name) => `packages/${name}`)])(
    "in %s equals the one that the library reports",
    (folder) => expect(manifest(folder).version).toBe(VERSION),
  );
});

describe("the documents", () => {
  it.each(documents())("link to existing files: $path", (document) => {
    const missing = relativeLinks(document).filter(
      (target) => !existsSync(join(repositoryRoot, dirname(document.path), target)),
    );
    expect(missing).toEqual([]);
  });

  it.each(documents())("name existing npm scripts: $path", ({ text }) => {
    const named = [...text.matchAll(/`npm (?:run )?([a-z][\w:-]*)/g)].map(([, name]) => name!);
    const known = new Set([...Object.keys(scripts), ...packageScripts(), ...NPM_COMMANDS]);
    expect(named.filter((name) => !known.has(name))).toEqual([]);
  });
});

describe("the README's table of commands", () => {
  const table = [...readme!.text.matchAll(/^\| `npm (?:run )?([\w:]+)` \|/gm)].map(([, name]) => name!);

  it("lists only scripts of package.json", () => {
    expect(table.length).toBeGreaterThan(0);
    expect(table.filter((name) => !(name in scripts))).toEqual([]);
  });

  it("lists what a newcomer needs", () => {
    expect(table).toEqual(expect.arrayContaining(["start", "test"]));
  });
});

const sources = readdirSync(join(repositoryRoot, "packages"))
  .map((name) => join(repositoryRoot, "packages", name, "src"))
  .flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts") && !file.endsWith("error-reasons.ts"))
      .map((file) => ({
        file,
        text: readFileSync(join(folder, file), "utf8").replace(/^\s*(\*|\/\/).*$/gm, ""),
      })),
  );

describe("the page of errors", () => {
  it("holds the table that the library has", async () => {
    const script = join(repositoryRoot, "scripts/write-errors-page.mjs");
    const { stdout } = await promisify(execFile)(process.execPath, [script, "--print"]);
    expect(await readFile(join(repositoryRoot, "docs/errors.md"), "utf8")).toBe(stdout);
  });

  it("gives every code an HTTP and a gRPC status", async () => {
    const page = await readFile(join(repositoryRoot, "docs/errors.md"), "utf8");
    expect(page).not.toContain("undefined");
  });
});

describe("the table of reasons", () => {
  it("has a general reason for every code, which is named like the code", () => {
    const codes = new Set(Object.values(errorReasons).map(({ code }) => code));
    expect([...codes].filter((code) => errorReasons[code].code !== code)).toEqual([]);
  });

  it("has no reason that no source uses", () => {
    const used = new Set(
      sources.flatMap(({ text }) => [...text.matchAll(/"([A-Z_]+)"/g)].map(([, word]) => word)),
    );
    expect(Object.keys(errorReasons).filter((reason) => !used.has(reason))).toEqual([]);
  });
});

describe("errors in the sources", () => {
  it("have a reason of their own wherever they are UNAVAILABLE", () => {
    const general = sources.flatMap(({ file, text }) =>
      callsOf(text)
        .filter((call) => /^\s*"UNAVAILABLE"/.test(call) && !/\breason\b/.test(call))
        .map((call) => `${file}: ${call.trim()}`),
    );
    expect(general).toEqual([]);
  });
});

/** The arguments of each place that makes an error. */
function callsOf(text: string): string[] {
  return [...text.matchAll(/(?:new TritonError|errorWithoutStack)\(/g)].map(({ index, 0: { length } }) => {
    let depth = 1;
    let end = index + length;
    for (; depth > 0 && end < text.length; end++) {
      if (text[end] === "(") depth++;
      if (text[end] === ")") depth--;
    }
    return text.slice(index + length, end - 1);
  });
}

interface Feature {
  readonly name: string;
  readonly page: string;
  readonly example: string;
  readonly proofs: string;
}

/** Words of the README that join features. */
const JOINTS = new Set(["a", "an", "and", "by", "in", "of", "on", "or", "over", "that", "the", "to", "with"]);

const read = (path: string) => readFileSync(join(repositoryRoot, path), "utf8").replaceAll("\r\n", "\n");

/** The cells of the rows of a table, without its head. */
const rows = (text: string) =>
  [...text.matchAll(/^\| (.*) \|$/gm)]
    .slice(1)
    .map(([, row]) => row!.split(" | ").map((cell) => cell.trim()));

/** The text of a cell without its links. */
const plain = (cell: string) => cell.replace(/\[([^\]]+)\]\([^)]*\)/g, "$1");

const [, table = ""] = /\n## Features\n(.*?)\n## /s.exec(read("README.md")) ?? [];

const parts = rows(table).map(([name, state]) => ({ name: plain(name!), state: plain(state!) }));

const sections = new Map(
  read("docs/features.md")
    .split("\n## ")
    .slice(1)
    .map((section) => {
      const [title] = section.split("\n", 1);
      const features = rows(section).map(
        ([name, page, example, proofs]): Feature => ({
          name: name!,
          page: page!,
          example: example!,
          proofs: proofs!,
        }),
      );
      return [title!.toLowerCase(), features] as const;
    }),
);

describe("docs/features.md", () => {
  it("the page has the parts of the README's table, in its order", () => {
    expect([...sections.keys()]).toEqual(parts.map(({ name }) => name.toLowerCase()));
  });
});

describe.each(parts)("$name", ({ name, state }) => {
  const features = sections.get(name.toLowerCase()) ?? [];

  it("has a row for each feature that the README names, and no other", () => {
    let rest = state;
    for (const feature of features.toSorted((a, b) => b.name.length - a.name.length)) {
      expect(rest, feature.name).toContain(feature.name);
      rest = rest.replace(feature.name, " ");
    }
    const left = rest.match(/[\w`/.-]*\w[\w`/.-]*/g) ?? [];
    expect(left.filter((word) => !JOINTS.has(word))).toEqual([]);
  });

  it("links each feature to an example, to which its page links too", () => {
    for (const { name, page, example } of features) {
      const [, folder] = /^\[[\w-]+\]\(\.\.\/(examples\/(?:tutorials\/)?[\w-]+)\)$/.exec(example) ?? [];
      expect(folder, name).toBeDefined();
      expect(existsSync(join(repositoryRoot, folder!, "README.md")), name).toBe(true);
      const [, document] = /\(([\w-]+\.md)/.exec(page)!;
      expect(read(`docs/${document}`).includes(folder!), `${name}: ${document} links to ${folder}`).toBe(
        true,
      );
    }
  });

  it("links each feature to its page and to tests that exist", () => {
    for (const { name, page, proofs } of features) {
      expect(page, name).toMatch(/^\[[\w -]+\]\([\w-]+\.md(?:#[\w-]+)?\)$/);
      const links = [...proofs.matchAll(/\]\(\.\.\/([^)]+)\)/g)].map(([, path]) => path!);
      expect(links.filter((path) => !existsSync(join(repositoryRoot, path)))).toEqual([]);
      const tests = links.filter((path) => path.endsWith(".test.ts"));
      expect(tests.length, name).toBeGreaterThan(0);
      // Some files make their tests in a function that they share with others, such as `replayHttp()`.
      expect(tests.filter((path) => !/^\s*(?:it|test|describe)[.(]|^\w+\(.*\);$/m.test(read(path)))).toEqual(
        [],
      );
    }
  });
});

describe("texts of the library that pages quote", () => {
  /** Texts of other programs, which no source of ours contains. */
  const TEXTS_OF_OTHERS = [
    "ERR_REQUIRE_ESM",
    "ECONNREFUSED",
    "Failed to load shared library",
    "JS heap out of memory",
    "SIGSEGV",
  ];

  /** The sources in which texts are looked up: without comments, and with strings over several lines joined. */
  const sources = readdirSync(join(repositoryRoot, "packages"))
    .map((name) => join(repositoryRoot, "packages", name, "src"))
    .flatMap((folder) =>
      readdirSync(folder, { recursive: true, encoding: "utf8" })
        .filter((file) => file.endsWith(".ts"))
        .map((file) => readFileSync(join(folder, file), "utf8")),
    )
    .map((text) => text.replace(/^\s*(?:\/?\*|\/\/).*$/gm, "").replace(/["`]\s*\+\s*["`]/g, ""))
    .join("\n");

  const read = (page: string) =>
    readFileSync(join(repositoryRoot, "docs", page), "utf8").replaceAll("\r\n", "\n");

  /** The cells of the first column of the tables below a heading, as texts in backticks. */
  function quotedTexts(page: string, heading: RegExp): string[] {
    return page
      .split(/^## /m)
      .filter((section) => heading.test(section))
      .flatMap((section) => section.split("\n"))
      .filter((line) => line.startsWith("| "))
      .flatMap((line) => [...line.split(" | ")[0]!.matchAll(/`([^`]+)`/g)].map(([, text]) => text!));
  }

  /** The parts of a text that the sources contain as they are: those between placeholders and quotes. */
  function fixedParts(text: string): string[] {
    return text
      .split(/\.\.\.|'/)
      .map((part) => part.trim())
      .filter((part) => part.length > 3);
  }

  /** Everything that a quoted text may come from. */
  const known = [sources, ...Object.values(errorReasons).map(({ text }) => text), ...TEXTS_OF_OTHERS].join(
    "\n",
  );

  describe("the texts that the troubleshooting page quotes", () => {
    const texts = quotedTexts(
      read("troubleshooting.md"),
      /^(?:Installing|Models|Requests|Overload|Slow|Workers|Starting)/,
    ).filter((text) => / /.test(text) && !/^[\w/.-]+\(|^npm |^new /.test(text));

    it("are many", () => expect(texts.length).toBeGreaterThan(40));

    it.each(texts)("stand in the sources: %s", (text) => {
      expect(fixedParts(text).filter((part) => !known.includes(part))).toEqual([]);
    });
  });

  describe("the page of operations", () => {
    const page = read("operations.md");

    it("quotes lines of the log that the sources contain", () => {
      const lines = quotedTexts(page, /^Logs/).filter((text) => / /.test(text));
      expect(lines.length).toBeGreaterThan(5);
      expect(lines.filter((line) => !sources.includes(line) && !/^tritonjs /.test(line))).toEqual([]);
    });

    it("names metrics that the library has", () => {
      const names = new Set([...page.matchAll(/\b(?:nv|tritonjs)_\w+/g)].map(([name]) => name));
      names.delete("nv_");
      expect(names.size).toBeGreaterThan(12);
      expect([...names].filter((name) => !sources.includes(`"${name}"`))).toEqual([]);
    });
  });

  describe.each(["getting-started.md", "operations.md", "troubleshooting.md"])("the links of %s", (name) => {
    it("lead to headings that exist", () => {
      const links = [...read(name).matchAll(/\]\(([\w-]+\.md)?#([\w-]+)\)/g)];
      const missing = links.filter(([, page, anchor]) => !anchors(read(page ?? name)).has(anchor!));
      expect(missing.map(([link]) => link)).toEqual([]);
    });
  });

  function anchors(page: string): Set<string> {
    const headings = [...page.matchAll(/^#+ (.*)$/gm)].map(([, heading]) => heading!);
    return new Set(
      headings.map((heading) =>
        heading
          .toLowerCase()
          .replace(/[^\w -]/g, "")
          .replaceAll(" ", "-"),
      ),
    );
  }
});

/** SHA-256 of the configurations of the tutorials, which are not edited. */
const CONFIGURATIONS: Readonly<Record<string, string>> = {
  attention_rescoring: "d33634b74be8ff45d0171d6d0c4da1620372207d8462374827a91a929d119228",
  decoder: "bdceb8c3a05cbd3b0b7499567b9eaa979bcd1ee2657f4713daf5f45c25e5b695",
  encoder: "089e1351e7c53ff0fa67f844c43724e972a7258cef162840560678709d00e6e1",
  ensemble_model: "2a05e4cc1bd361e4b241f187dc7f959fe36aa416c1239921c9e6c4df5ce7a4a2",
  feature_extractor: "6e9b53531d7da855ba09ef24145eb7df18f0f6659dfc36409c657f0986e0431f",
  resnet50: "df5bec97d30e4404c876fe669350fe7f0599b800957ced6ec066d8700ef0ee6a",
  resnet50_dali: "600b1f7b680a7eabf6584e10797713aa0333d460dec53c29f4134ee45386a823",
  resnet50_ensemble: "6f2142e4c57e50b3c8d088e2ebb26fda996020942d7317bd3d2c9d44886a1c68",
  resnet_classification: "2a12bc82c9d0841695eb1e43948ba8f280b0614dd4ac76f26a689d8e2b8ff93b",
  scoring: "20581d3951a159f2ef44826ecacedcc562895821e592a6774d0aebb2306d208f",
  text_detection: "b87da652a499e3040a8a184514e77b471362a67e67bd92b4bd08f81ad46af632",
};

describe("docs/tutorials.md", () => {
  it("has twenty programs in their order, each with a command, and a proof that exists", () => {
    const rows = tutorialRows();
    expect(rows.map(({ number }) => number)).toEqual(Array.from({ length: 20 }, (_, i) => i + 1));
    for (const { program, commands, cells } of rows) {
      const [, , steps, command, proof] = cells as [string, string, string, string, string];
      expect(cells, program).toHaveLength(5);
      expect(steps.length, program).toBeGreaterThan(10);
      expect(command, program).toMatch(/^`[^`]+`(?:; `[^`]+`)*$/);
      for (const { example } of commands) {
        expect(existsSync(join(repositoryRoot, "examples", example, "package.json")), example).toBe(true);
      }
      const links = [...proof.matchAll(/\]\(([^)#]+)/g)].map(([, target]) => join("docs", target!));
      expect(links.length, program).toBeGreaterThan(0);
      expect(links.filter((target) => !existsSync(join(repositoryRoot, target)))).toEqual([]);
      // Commands of other forms are run by a test of their own, which the row links.
      const folders = [...command.matchAll(/examples\/tutorials\/([\w-]+)\//g)].map(([, folder]) => folder!);
      const tests = links.filter((target) => target.endsWith(".test.ts"));
      const run = tests.map((target) => readFileSync(join(repositoryRoot, target), "utf8")).join("\n");
      expect(
        folders.filter((folder) => !run.includes(folder)),
        program,
      ).toEqual([]);
    }
  });

  it("has the configurations of the tutorials, unchanged", () => {
    for (const [model, hash] of Object.entries(CONFIGURATIONS)) {
      const file = readFileSync(join(repositoryRoot, "examples/tutorials/models", model, "config.pbtxt"));
      expect({ model, hash: createHash("sha256").update(file).digest("hex") }).toEqual({ model, hash });
    }
  });
});

/** A model of each backend that cannot run here, and what its reason proposes. */
const REFUSED: readonly (readonly [
  name: string,
  config: string,
  file: string,
  instead: readonly string[],
])[] = [
  ["tensorrt_plan", 'platform: "tensorrt_plan"', "model.plan", ["trtexec --onnx", "onnxruntime"]],
  ["tensorrt", 'backend: "tensorrt"', "model.plan", ["trtexec --onnx", "onnxruntime"]],
  ["dali", 'backend: "dali"', "model.dali", ["image", "substitute"]],
  ["openvino", 'backend: "openvino"', "model.xml", ["ONNX"]],
  ["torch_aoti", 'platform: "torch_aoti"', "model.pt2", ["TorchScript"]],
  ["vllm", 'backend: "vllm"', "model.json", ["vllm serve"]],
  ["tensorrtllm", 'backend: "tensorrtllm"', "model.json", ["trtllm-serve"]],
  ["mxnet", 'backend: "mxnet"', "model.params", ["mxnet.onnx.export_model"]],
  ["inferentia", 'backend: "inferentia"', "model.pt", ["ONNX"]],
  ["armnn_tflite", 'backend: "armnn_tflite"', "model.tflite", ["tf2onnx"]],
  ["paddle", 'backend: "paddle"', "model.pdmodel", ["paddle2onnx"]],
  ["caffe2_netdef", 'platform: "caffe2_netdef"', "model.netdef", ["PyTorch", "ONNX"]],
];

describe("a model that cannot run here", () => {
  it.each(REFUSED)(
    "for %s is refused by name, with what to do instead",
    async (name, config, file, instead) => {
      await using models = await RepositoryOnDisk.create({
        "m/config.pbtxt": `${config}
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]`,
        [`m/1/${file}`]: "weights",
      });
      const logger = { error() {}, warn() {}, info() {}, debug() {} };
      await using triton = new Triton({
        logger,
        extensions: [repository({ modelRepository: models.path, exitOnError: false })],
      });
      await triton.ready();
      const [row] = await serviceOf(triton).repositoryIndex(false);
      expect(row).toMatchObject({ name: "m", state: "UNAVAILABLE" });
      for (const text of [name.split("_")[0]!, ...instead]) {
        expect(row!.reason!.toLowerCase()).toContain(text.toLowerCase());
      }
      expect(tutorialPage()).toContain(`\`${name}\``);
    },
  );
});
