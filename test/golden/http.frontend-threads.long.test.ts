import { replayHttp } from "./http-exchanges.js";

replayHttp(1);
