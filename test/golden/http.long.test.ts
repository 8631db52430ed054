import { replayHttp } from "./http-exchanges.js";

replayHttp();
