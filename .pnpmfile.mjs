/* Package managers find the modules of a published package joined (scripts/bundle.mjs): there its names lead to the bundle. */

function bundled(target) {
  if (typeof target === "string") return target.replace(/^(\.\/)?dist\/(.+\.js)$/, "$1bundle/$2");
  return Object.fromEntries(Object.entries(target).map(([key, value]) => [key, bundled(value)]));
}

export const hooks = {
  beforePacking(manifest) {
    if (!manifest.files?.includes("bundle")) return manifest;
    const { exports, bin } = manifest;
    return { ...manifest, exports: bundled(exports), ...(bin === undefined ? {} : { bin: bundled(bin) }) };
  },
};
