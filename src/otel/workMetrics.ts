/**
 * Metrics of runs, model calls and tools, through the global meter. Rule: the meter provider is read for each record, because a
 * program may set it after the agent is made.
 */
import type { Attributes, Counter, Histogram, MeterProvider, MetricsAPI } from '@opentelemetry/api';
import type { Usage } from '../../machines/internal.ts';
import { METRICS, TOKEN_TYPE } from './attributes.ts';

interface Instruments {
  tokens: Histogram;
  duration: Histogram;
  outcomes: Counter;
}

export class WorkMetrics {
  readonly #api: MetricsAPI;
  #provider: MeterProvider | undefined;
  #instruments: Instruments | undefined;

  constructor(api: MetricsAPI) {
    this.#api = api;
  }

  addTokens(usage: Usage, attributes: Attributes): void {
    const { tokens } = this.#current;
    tokens.record(usage.inputTokens, { ...attributes, [TOKEN_TYPE]: 'input' });
    tokens.record(usage.outputTokens, { ...attributes, [TOKEN_TYPE]: 'output' });
  }

  addDuration(ms: number, attributes: Attributes): void {
    this.#current.duration.record(ms / 1_000, attributes);
  }

  addOutcome(attributes: Attributes): void {
    this.#current.outcomes.add(1, attributes);
  }

  get #current(): Instruments {
    const provider = this.#api.getMeterProvider();
    if (!this.#instruments || provider !== this.#provider) {
      const meter = provider.getMeter('runchart');
      this.#provider = provider;
      this.#instruments = {
        tokens: meter.createHistogram(...METRICS.tokens),
        duration: meter.createHistogram(...METRICS.duration),
        outcomes: meter.createCounter(...METRICS.outcomes),
      };
    }
    return this.#instruments;
  }
}
