import { connect } from "node:http2";
import { Triton, batch } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { encodeMessage, inference } from "@tritonjs/grpc-messages";
const tally = {};
for (let round = 0; round < 40; round++) {
  const triton = new Triton();
  triton.bind({ modelName: "m", inputs: [{ name: "x", dtype: "FP32", shape: [1] }], outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
    inferFunc: batch(async ({ x }) => { tally.executed = (tally.executed ?? 0) + x.shape[0]; await new Promise((r) => setTimeout(r, 3)); return { y: x }; }) });
  const { addresses } = await triton.serve({ frontends: [grpc({ port: 0 })] });
  const url = "http://" + addresses.grpc.url;
  const msg = encodeMessage(inference.ModelInferRequest, { modelName: "m", inputs: [{ name: "x", datatype: "FP32", shape: [1, 1] }], rawInputContents: [new Uint8Array(4)] });
  const frame = Buffer.concat([Buffer.from([0, 0, 0, 0, msg.length]), msg]);
  let stop = false;
  const one = () => new Promise((done) => {
    const session = connect(url); let got = 0, status, headers = false, err;
    session.on("error", (e) => { err = e.code; });
    session.on("close", () => done(status !== undefined ? "status " + status : headers ? "CUT after headers " + got + " " + err : "no headers " + err));
    const s = session.request({ ":method": "POST", ":path": "/inference.GRPCInferenceService/ModelInfer", "content-type": "application/grpc", te: "trailers" });
    s.on("response", (h) => { headers = true; if (h["grpc-status"]) status = h["grpc-status"]; }); s.on("trailers", (t) => { status = t["grpc-status"]; });
    s.on("data", (d) => { got += d.length; }); s.on("error", (e) => { err = e.code; }); s.on("close", () => session.close());
    s.end(frame);
  });
  const loops = Array.from({ length: 10 }, async () => { while (!stop) { const r = await one(); tally[r] = (tally[r] ?? 0) + 1; if (r.startsWith("no headers ECONNREFUSED")) return; } });
  await new Promise((r) => setTimeout(r, 60));
  await triton.close(); stop = true; await Promise.all(loops);
}
console.log(tally);
