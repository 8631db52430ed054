/* Imports `with { type: "file" }` are paths of files. */
declare module "*.wasm" {
  const path: string;
  export default path;
}
declare module "*.onnx" {
  const path: string;
  export default path;
}
