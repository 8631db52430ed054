import { Body, Controller, HttpCode, Inject, Post } from "@nestjs/common";
import { ClientSignal } from "./client-signal.decorator.js";
import { IrisService } from "./iris.service.js";

interface Flower {
  readonly measurements: number[];
}

/** A route of the application that calls the model in process. */
@Controller("flowers")
export class IrisController {
  constructor(@Inject(IrisService) private readonly iris: IrisService) {}

  @Post()
  @HttpCode(200)
  async classify(@Body() flower: Flower, @ClientSignal() signal: AbortSignal): Promise<{ species: string }> {
    return { species: await this.iris.classify(flower.measurements, signal) };
  }
}
