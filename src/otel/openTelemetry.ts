/**
 * `runchart/otel`: spans and metrics of runs, model calls and tools for OpenTelemetry. Rule: no failure of the API, an SDK or an exporter
 * affects a run. Contents are recorded only where the host asks for them.
 */
import type { Tracer } from '@opentelemetry/api';
import { ConfigurationError } from '../errors.ts';
import type { Plugin } from '../plugins/plugin.ts';
import { OBSERVES_WORK, type ObservesWork } from '../plugins/workObserver.ts';
import { checkOptionsOf, flag, hasMethods, nonEmptyText, object } from '../validation.ts';
import { ConversationTrace } from './conversationTrace.ts';
import { WorkMetrics } from './workMetrics.ts';

/** Loaded here, so that a missing package is an error of `openTelemetry()` and not of the import. */
const loaded = await import('@opentelemetry/api').then(
  (api) => ({ api }),
  (cause: unknown) => ({ cause }),
);

/** The options of `openTelemetry`. */
export interface OpenTelemetryOptions {
  /** Makes the spans. Default: the global tracer `runchart`. */
  tracer?: object;
  /** Records messages, arguments and results. Default: false. */
  contents?: boolean;
  /** The name of the agent in traces. */
  agentName?: string;
  /** A stable id of the agent in traces. */
  agentId?: string;
}

const optionsValidator = object({
  tracer: { expected: 'a Tracer', test: (value) => hasMethods(value, 'startSpan'), secret: true },
  contents: flag,
  agentName: nonEmptyText,
  agentId: nonEmptyText,
});

/**
 * Makes a plugin that records spans and metrics of runs, model calls and tools. Throws ConfigurationError for an invalid
 * option, and where `@opentelemetry/api` is not installed.
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): Plugin {
  checkOptionsOf('openTelemetry', options, optionsValidator);
  if ('cause' in loaded) {
    const { cause } = loaded;
    throw new ConfigurationError('openTelemetry() needs @opentelemetry/api: npm install @opentelemetry/api', { cause });
  }
  const { api } = loaded;
  const { tracer = api.trace.getTracer('runchart'), contents = false, agentName: name, agentId: id } = options;
  const metrics = new WorkMetrics(api.metrics);
  const plugin: Plugin & ObservesWork = {
    name: 'openTelemetry',
    [OBSERVES_WORK]: (conversation) =>
      new ConversationTrace({ api, tracer: tracer as Tracer, contents, metrics, agent: { name, id }, conversation }),
  };
  return plugin;
}
