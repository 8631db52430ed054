import { Triton, batch, sample } from "@tritonjs/core";
import { TreeModel, trees } from "@tritonjs/trees";
const model="/tmp/r20/m.json"; const direct=new TreeModel({model}); const t=new Triton();
const bound=t.bind({modelName:"a",inferFunc:trees({model}),config:{maxBatchSize:1000}});
const I=[{name:"input__0",dtype:"FP32",shape:[30]}],O=[{name:"output__0",dtype:"FP32",shape:[1]}];
const cb=t.bind({modelName:"b",inputs:I,outputs:O,inferFunc:(rs)=>rs.map(({inputs:{input__0:x}})=>({output__0:direct.predict(x.data)})),config:{maxBatchSize:1000}});
const ba=t.bind({modelName:"c",inputs:I,outputs:O,inferFunc:batch(({input__0:x})=>({output__0:direct.predict(x.data)})),config:{maxBatchSize:1000}});
const zero=t.bind({modelName:"d",inputs:I,outputs:O,inferFunc:(rs)=>rs.map(()=>({output__0:new Float32Array(1)})),config:{maxBatchSize:1000}});
const one=Float32Array.from({length:30},()=>Math.random()*2-1);
const sides={direct:()=>direct.predict(one),trees:()=>bound.inferSample({input__0:one}),callback:()=>cb.inferSample({input__0:one}),batch:()=>ba.inferSample({input__0:one}),zero:()=>zero.inferSample({input__0:one})};
const best={};
for(let r=0;r<60;r++) for(const [n,f] of Object.entries(sides)){ const s=performance.now(); for(let i=0;i<400;i++){const p=f(); if(p instanceof Promise) await p;} const e=(performance.now()-s)/400*1000; best[n]=Math.min(best[n]??1e9,e); }
console.log(Object.entries(best).map(([n,v])=>n+" "+v.toFixed(2)+" µs").join("  "));
if(process.argv[2]){ for(let i=0;i<300000;i++) await sides[process.argv[2]](); }
await t.close();
