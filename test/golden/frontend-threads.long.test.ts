import { replayGrpc } from "./grpc-calls.js";
import { replayHttp } from "./http-exchanges.js";

replayHttp(1);

replayGrpc(1);
