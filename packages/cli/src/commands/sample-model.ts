// Written by scripts/generate-sample.mjs: do not edit.

/** An ONNX model of a few bytes: four features in, probabilities of three classes out, any number of rows. */
export function sampleModel(): Uint8Array {
  return Buffer.from(BASE64.join(""), "base64");
}

const BASE64 = [
  "CAgSCHRyaXRvbmpzOuoBCiMKCGZlYXR1cmVzCgd3ZWlnaHRzEgZzY29yZXMiBk1hdE11bAotCgZzY29yZXMSDXByb2JhYmlsaXRp",
  "ZXMiB1NvZnRtYXgqCwoEYXhpcxgBoAECEgpjbGFzc2lmaWVyKkEIBAgDEAFCB3dlaWdodHNKMAAAAD8AAIA+AAAAvwAAgD8AAIA+",
  "AACAvgAAgL8AAAA/AACAPwAAwL8AAIC+AADAP1ofCghmZWF0dXJlcxITChEIARINCgcSBWJhdGNoCgIIBGIkCg1wcm9iYWJpbGl0",
  "aWVzEhMKEQgBEg0KBxIFYmF0Y2gKAggDQgQKABAR",
];
