import { expect, it } from "vitest";
import { publicReason } from "../../src/routes/management.js";

it.each([
  ["failed to stat file /srv/models/resnet/1/model.onnx", "failed to stat file resnet/1/model.onnx"],
  ["/srv/models/resnet/config.pbtxt: line 3", "resnet/config.pbtxt: line 3"],
  ["cannot read '/srv/my models/resnet/1/a.onnx': EACCES", "cannot read 'resnet/1/a.onnx': EACCES"],
  ["unable to find '/srv/someone/weights.bin'", "unable to find 'weights.bin'"],
  ["at load (file:///srv/models/resnet/1/model.js:3:7)", "at load (resnet/1/model.js:3:7)"],
  ["open C:\\models\\resnet\\1\\model.onnx failed", "open resnet/1/model.onnx failed"],
  ["cause:/srv/someone/secret", "cause:secret"],
  ["cannot list s3://bucket/models/resnet", "cannot list s3://bucket/models/resnet"],
  ["resnet/1/model.onnx and/or an I/O error", "resnet/1/model.onnx and/or an I/O error"],
  ["version 1 is at / now", "version 1 is at / now"],
  ["", ""],
])("shows clients no absolute path in '%s'", (reason, shown) => {
  expect(publicReason(reason, "resnet")).toBe(shown);
});
