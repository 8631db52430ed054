import koffi from "koffi";
import { type Koffi, requireKoffi } from "../../../../core/src/optional-packages.js";
import { bindOrtApi, loadedLibraries, type OrtApi } from "../../../src/onnxruntime/native/ort-c-api.js";
import { chooseLibrary } from "../../../src/onnxruntime/native/ort-library.js";

/** A call that the library got: its function, and the options that it was given. */
export type RecordedCall = readonly [name: string, options?: Readonly<Record<string, string>>];

export interface RecordingLibrary extends Disposable {
  /** Name for the option `library`. */
  readonly library: string;
  readonly api: OrtApi;
  /** Calls that concern providers, in their order. */
  readonly calls: RecordedCall[];
  /** Calls that bind tensors and run a session with them, in their order. */
  readonly runs: RecordedCall[];
}

export interface Recorded {
  /** Providers that the library says it has. */
  readonly providers?: readonly string[];
  /** Texts with which functions fail, by their names: `updateCudaOptions`. Tests may change it. */
  readonly failing?: Record<string, string>;
  /** Names of the plug-in providers that a registered library offers, one for each device. */
  readonly plugins?: readonly string[];
}

const FAMILIES: Readonly<
  Record<string, readonly [create: number, update: number, release: number, append: number]>
> = {
  Cuda: [205, 206, 208, 204],
  Tensorrt: [171, 172, 174, 170],
  Rocm: [255, 256, 258, 153],
  Cann: [221, 222, 224, 220],
  Dnnl: [240, 241, 243, 239],
};

// Before the first library is loaded, because that fixes the stack of calls on other threads.
requireKoffi();

/** Entries of the table that are copied: more than are in use. */
const TABLE_LENGTH = 330;

let count = 0;

/**
 * The installed ONNX Runtime with other functions for providers: they write down what they get, and say that it worked.
 * So a session opens and runs on the CPU. The functions are callbacks of this process, which needs no compiler.
 */
export function recordingLibrary({
  providers = [],
  failing = {},
  plugins = [],
}: Recorded = {}): RecordingLibrary {
  const calls: RecordedCall[] = [];
  const runs: RecordedCall[] = [];
  const file = chooseLibrary().file;
  const real = koffi.load(file);
  const words = (at: bigint, length: number) =>
    BigUint64Array.from(Array.from(koffi.decode(at, "uint64", length) as ArrayLike<number | bigint>, BigInt));
  const base = words(BigInt(real.func("uint64_t OrtGetApiBase()")()), 2);
  const getApi = koffi.decode(base[0], koffi.proto("uint64", ["uint32"]));
  const table = words(BigInt(getApi(16)), TABLE_LENGTH);
  const createStatus = koffi.decode(table[0], koffi.proto("uint64", ["int", "str"]));
  const kept: unknown[] = [real, base, table];
  const registered: ReturnType<typeof koffi.register>[] = [];
  const memcpy = koffi.load(null).func("void memcpy(uint64_t to, uint64_t from, uint64_t size)");

  const callback = (result: string, parameters: string[], called: (...args: never[]) => unknown) => {
    const address = koffi.register(
      called as (...args: unknown[]) => unknown,
      koffi.pointer(koffi.proto(result, parameters)),
    );
    registered.push(address);
    return BigInt(koffi.address(address as never));
  };
  const write = (to: number | bigint, value: bigint) => {
    const word = BigUint64Array.of(value);
    memcpy(to, koffi.address(word), 8);
  };
  const texts = (at: number | bigint, length: number) =>
    length === 0 ? [] : (koffi.decode(BigInt(at), "char *", length) as string[]);
  const options = (keys: number, values: number, length: number) => {
    const all = texts(values, length);
    return Object.fromEntries(texts(keys, length).map((key, i) => [key, all[i]!]));
  };
  const pointers = (names: readonly string[]) => {
    const bytes = names.map((name) => Buffer.from(`${name}\0`));
    const list = BigUint64Array.from([...bytes.map((one) => BigInt(koffi.address(one))), 0n]);
    kept.push(bytes, list);
    return BigInt(koffi.address(list));
  };
  const done = (name: string, given?: Readonly<Record<string, string>>) => {
    calls.push(given === undefined ? [name] : [name, given]);
    const text = failing[name];
    return text === undefined ? 0 : createStatus(/invalid|unknown/i.test(text) ? 2 : 1, text);
  };

  for (const [family, [create, update, release, append]] of Object.entries(FAMILIES)) {
    table[create] = callback("uint64", ["uint64"], (to: number) => {
      write(to, 7n);
      return done(`create${family}Options`);
    });
    table[update] = callback(
      "uint64",
      ["uint64", "uint64", "uint64", "uint64"],
      (_: number, keys: number, values: number, n: number) =>
        done(`update${family}Options`, options(keys, values, n)),
    );
    table[append] = callback("uint64", ["uint64", "uint64"], () => done(`append${family}`));
    table[release] = callback("void", ["uint64"], () => void done(`release${family}Options`));
  }
  for (const [index, name] of [
    [275, "appendOpenvino"],
    [276, "appendVitisai"],
  ] as const) {
    table[index] = callback(
      "uint64",
      ["uint64", "uint64", "uint64", "uint64"],
      (_: number, keys: number, values: number, n: number) => done(name, options(keys, values, n)),
    );
  }
  table[216] = callback(
    "uint64",
    ["uint64", "str", "uint64", "uint64", "uint64"],
    (_: number, name: string, keys: number, values: number, n: number) =>
      done(name, options(keys, values, n)),
  );
  if (providers.length > 0) {
    const list = pointers(providers);
    table[125] = callback("uint64", ["uint64", "uint64"], (to: number, length: number) => {
      write(to, list);
      memcpy(length, koffi.address(Int32Array.of(providers.length)), 4);
      return 0;
    });
    table[126] = callback("uint64", ["uint64", "int"], () => 0);
  }
  table[301] = callback("uint64", ["uint64", "str", "uint64"], (_: number, name: string, path: number) =>
    done("registerExecutionProviderLibrary", { [name]: koffi.decode(BigInt(path), "char", -1) as string }),
  );
  // Memory of a device is memory of the CPU here.
  const bindOutputToDevice = koffi.decode(table[138], koffi.proto("uint64", ["uint64", "str", "uint64"]));
  table[138] = callback(
    "uint64",
    ["uint64", "str", "uint64"],
    (binding: number, name: string, info: number) => {
      if (info !== api.cpuMemory) calls.push(["bindOutputToDevice", { name }]);
      return bindOutputToDevice(binding, name, api.cpuMemory);
    },
  );
  const bindInput = koffi.decode(table[136], koffi.proto("uint64", ["uint64", "str", "uint64"]));
  table[136] = callback(
    "uint64",
    ["uint64", "str", "uint64"],
    (binding: number, name: string, value: number) => {
      runs.push(["bindInput", { name }]);
      return failing.bindInput === undefined
        ? bindInput(binding, name, value)
        : createStatus(1, failing.bindInput);
    },
  );
  // The stand-in for CUDA has its memory of a GPU in memory of this process.
  const createTensor = koffi.decode(
    table[49],
    koffi.proto("uint64", ["uint64", "uint64", "uint64", "uint64", "uint64", "int", "uint64"]),
  );
  table[49] = callback(
    "uint64",
    ["uint64", "uint64", "uint64", "uint64", "uint64", "int", "uint64"],
    (info: number, data: number, size: number, shape: number, rank: number, type: number, to: number) => {
      if (info !== api.cpuMemory) runs.push(["createTensorOnDevice", { byteSize: String(size) }]);
      return createTensor(api.cpuMemory, data, size, shape, rank, type, to);
    },
  );
  const fiveAddresses = ["uint64", "uint64", "uint64", "uint64", "uint64"];
  const createSession = koffi.decode(table[8], koffi.proto("uint64", fiveAddresses));
  table[8] = callback("uint64", fiveAddresses, (...args: number[]) => {
    const text = failing.createSession;
    // Once: the next try has other options.
    delete failing.createSession;
    return text === undefined ? createSession(...args) : createStatus(1, text);
  });
  const addRunConfigEntry = koffi.decode(table[165], koffi.proto("uint64", ["uint64", "str", "str"]));
  const graphs = new Map<number, string>();
  table[165] = callback("uint64", ["uint64", "str", "str"], (at: number, key: string, value: string) => {
    if (key === "gpu_graph_id") graphs.set(Number(at), value);
    return addRunConfigEntry(at, key, value);
  });
  const runWithBinding = koffi.decode(table[133], koffi.proto("uint64", ["uint64", "uint64", "uint64"]));
  table[133] = callback(
    "uint64",
    ["uint64", "uint64", "uint64"],
    (session: number, options: number, binding: number) => {
      const graph = graphs.get(Number(options));
      runs.push(graph === undefined ? ["run"] : ["run", { gpu_graph_id: graph, binding: String(binding) }]);
      const text = failing.run;
      return text === undefined ? runWithBinding(session, options, binding) : createStatus(1, text);
    },
  );
  const bindOutput = koffi.decode(table[137], koffi.proto("uint64", ["uint64", "str", "uint64"]));
  table[137] = callback(
    "uint64",
    ["uint64", "str", "uint64"],
    (binding: number, name: string, value: number) => {
      runs.push(["bindOutput", { name }]);
      return bindOutput(binding, name, value);
    },
  );
  const devices = BigUint64Array.from(plugins, (_, i) => BigInt(i + 1));
  table[303] = callback("uint64", ["uint64", "uint64", "uint64"], (_: number, to: number, length: number) => {
    write(to, BigInt(koffi.address(devices)));
    write(length, BigInt(devices.length));
    return 0;
  });
  table[312] = callback("str", ["uint64"], (device: number) => plugins[Number(device) - 1]);
  table[304] = callback(
    "uint64",
    ["uint64", "uint64", "uint64", "uint64", "uint64", "uint64", "uint64"],
    (_: number, __: number, list: number, length: number, keys: number, values: number, n: number) => {
      const chosen = Array.from(
        koffi.decode(BigInt(list), "uint64", Number(length)) as ArrayLike<number | bigint>,
      );
      return done(`devices ${chosen.join(", ")}`, options(keys, values, n));
    },
  );

  const tableAt = BigInt(koffi.address(table));
  base[0] = callback("uint64", ["uint32"], () => tableAt);
  const facade = {
    ...koffi,
    load: (name: string | null) =>
      name === file
        ? {
            func: (text: string) =>
              /OrtGetApiBase/.test(text) ? () => koffi.address(base) : real.func(text),
          }
        : koffi.load(name),
  } as unknown as Koffi;
  const library = `/stand-in-${count++}/libonnxruntime.so`;
  const api = bindOrtApi(facade, file);
  loadedLibraries.set(library, api);
  return {
    library,
    api,
    calls,
    runs,
    [Symbol.dispose]() {
      loadedLibraries.delete(library);
      for (const one of registered) koffi.unregister(one);
      kept.length = 0;
    },
  };
}
