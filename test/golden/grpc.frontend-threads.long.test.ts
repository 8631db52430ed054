import { replayGrpc } from "./grpc-calls.js";

replayGrpc(1);
