import { Module } from "@nestjs/common";
import { APP_FILTER } from "@nestjs/core";
import { IrisController } from "./iris.controller.js";
import { IrisService } from "./iris.service.js";
import { TritonErrorFilter } from "./triton-error.filter.js";

/** The model with its route. Other modules may inject `IrisService`. */
@Module({
  controllers: [IrisController],
  providers: [IrisService, { provide: APP_FILTER, useClass: TritonErrorFilter }],
  exports: [IrisService],
})
export class IrisModule {}
