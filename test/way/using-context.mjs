/** The compiler's helper for `using`: disposes what a block has used, the last first. */
export default function usingContext() {
  const used = [];
  const add = (value, method) => {
    if (value != null) used.push(() => method.call(value));
    return value;
  };
  return {
    u: (value) => add(value, value?.[Symbol.dispose]),
    a: (value) => add(value, value?.[Symbol.asyncDispose] ?? value?.[Symbol.dispose]),
    d() {
      const disposed = used.reverse().map((dispose) => dispose());
      if ("e" in this) throw this.e;
      return Promise.all(disposed);
    },
  };
}
