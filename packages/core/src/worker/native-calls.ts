/*
 * A thread that is terminated during a call of ONNX Runtime ends the whole process: the call then fails in native code,
 * which throws an error that nothing catches (`terminate called after throwing an instance of 'Napi::Error'`). The
 * same happens to a thread that is loading the library. So a thread is ended between such calls. This makes nothing
 * slower, because a native call cannot be interrupted anyway.
 */

/** Index in the shared state: 1 while the thread is in a native call. */
const IN_CALL = 0;

/** Index in the shared state: 1 once the thread must end, so that it makes no further calls. */
const ENDS = 1;

/** Milliseconds between two checks of a thread that is in a native call. */
const LOOKS_EVERY_MS = 5;

/** Milliseconds that an exiting process waits for a call to end. A thread that died in a call never leaves it. */
const EXIT_WAITS_MS = 30_000;

const threads = new Set<ThreadEnding>();

/** Ends a worker thread outside of its native calls. Made where the thread is started. */
export class ThreadEnding {
  /** Memory shared with the thread, for {@link guardNativeCalls}. */
  readonly state = new Int32Array(new SharedArrayBuffer(8));
  #over = false;

  constructor() {
    if (threads.size === 0) process.once("exit", waitForAll);
    threads.add(this);
  }

  /** Calls `end` once the thread is outside of native calls: now, if it is. */
  begin(end: () => void): void {
    if (this.#over || this.#mayEnd()) end();
    else setTimeout(() => this.begin(end), LOOKS_EVERY_MS).unref();
  }

  /** Forgets the thread, because it has ended. */
  over(): void {
    this.#over = true;
    threads.delete(this);
    if (threads.size === 0) process.off("exit", waitForAll);
  }

  /** Blocks until the thread is outside of native calls, at most for `limitMs`. */
  wait(limitMs: number): void {
    if (!this.#mayEnd()) Atomics.wait(this.state, IN_CALL, 1, limitMs);
  }

  #mayEnd(): boolean {
    Atomics.store(this.state, ENDS, 1);
    return Atomics.load(this.state, IN_CALL) === 0;
  }
}

/** Waits for all threads when the process exits, because Node then terminates them. */
function waitForAll(): void {
  for (const thread of threads) thread.wait(EXIT_WAITS_MS);
}

/** The thread's side: keeps the calls of ONNX Runtime, and the loading of any native library, until their end. */
export function guardNativeCalls(state: Int32Array): void {
  const calls = new NativeCalls(state);
  const load = process.dlopen;
  process.dlopen = (module: object, ...rest) => {
    calls.enter();
    try {
      Reflect.apply(load, process, [module, ...rest]);
    } finally {
      calls.leave();
    }
    guardOnnxRuntime((module as { exports?: unknown }).exports, calls);
  };
}

class NativeCalls {
  /** Native code may call JavaScript, which may call native code. */
  #depth = 0;

  constructor(private readonly state: Int32Array) {}

  enter(): void {
    if (this.#depth++ > 0) return;
    Atomics.store(this.state, IN_CALL, 1);
    if (Atomics.load(this.state, ENDS) === 0) return;
    this.#left();
    // The thread is ended here.
    for (;;) Atomics.wait(this.state, ENDS, 1);
  }

  leave(): void {
    if (--this.#depth === 0) this.#left();
  }

  #left(): void {
    Atomics.store(this.state, IN_CALL, 0);
    if (Atomics.load(this.state, ENDS) === 1) Atomics.notify(this.state, IN_CALL);
  }
}

type Callable = (this: unknown, ...args: unknown[]) => unknown;
type Constructor = new (...args: unknown[]) => object;

/** Replaces the functions of the library's exports, and its class of sessions, by guarded ones. */
function guardOnnxRuntime(exports: unknown, calls: NativeCalls): void {
  if (typeof exports !== "object" || exports === null || !("InferenceSession" in exports)) return;
  const { InferenceSession, ...functions } = exports as Record<string, unknown>;
  for (const [name, value] of Object.entries(functions)) {
    if (typeof value === "function") Reflect.set(exports, name, guarded(value as Callable, calls));
  }
  Reflect.set(exports, "InferenceSession", guardedClass(InferenceSession as Constructor, calls));
}

function guarded(native: Callable, calls: NativeCalls): Callable {
  return function (this: unknown, ...args) {
    calls.enter();
    try {
      return Reflect.apply(native, this, args);
    } finally {
      calls.leave();
    }
  };
}

function guardedClass(Native: Constructor, calls: NativeCalls): Constructor {
  class Session extends Native {
    constructor(...args: unknown[]) {
      calls.enter();
      try {
        super(...args);
      } finally {
        calls.leave();
      }
    }
  }
  for (const [name, property] of Object.entries(Object.getOwnPropertyDescriptors(Native.prototype))) {
    const { value, get } = property as PropertyDescriptor;
    if (name === "constructor") continue;
    if (typeof value === "function")
      Object.defineProperty(Session.prototype, name, { value: guarded(value, calls) });
    else if (get !== undefined)
      Object.defineProperty(Session.prototype, name, {
        get: guarded(get as Callable, calls) as () => unknown,
      });
  }
  return Session;
}
