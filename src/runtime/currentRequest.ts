/**
 * The request that a run works on: who asked, and which model, settings and tools apply. Invariant: it is read from the log, so it
 * is the same after a restart. A sub-agent works on the request of its parent.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec';
import {
  type CycleRequest,
  type LogState,
  type ModelSettings,
  originOf,
  type RequestInfo,
} from '../../machines/internal.ts';
import type { Model, ToolSpec } from '../models/model.ts';

/** The names that a request may use. */
export interface RequestNames {
  readonly models: { readonly [name: string]: Model };
  readonly outputs: { readonly [name: string]: StandardSchemaV1 };
}
export const noNames: RequestNames = { models: {}, outputs: {} };

/** The window of a model that a request may begin with, if one of them states it. */
export const windowOf = ([first]: readonly [Model, ...Model[]], { models }: RequestNames): number | undefined =>
  [first, ...Object.values(models)].find(({ contextWindow }) => contextWindow !== undefined)?.contextWindow;

interface RequestSources {
  logState: Pick<LogState, 'request' | 'called' | 'calls'>;
  models: readonly [Model, ...Model[]];
  named: RequestNames;
  /** The request of the parent, for a sub-agent. */
  above: (() => CycleRequest) | undefined;
}

export class CurrentRequest {
  readonly #sources: RequestSources;

  constructor(sources: RequestSources) {
    this.#sources = sources;
  }

  /** The request of the last cycle, or that of a call, which may belong to an earlier cycle. */
  of(callId?: string): CycleRequest {
    const { logState, above } = this.#sources;
    if (above) return above();
    const record = callId === undefined ? undefined : logState.calls.get(callId);
    return record?.request ?? logState.request;
  }

  origin(callId?: string): RequestInfo {
    return originOf(this.of(callId));
  }

  /** The first model of the request. A model that the agent no longer has is never replaced. */
  get model(): Model | { readonly missing: string } {
    const { models, named } = this.#sources;
    const { model: name } = this.of();
    if (name === undefined) return models[0];
    const model = Object.hasOwn(named.models, name) ? named.models[name] : undefined;
    return model ?? { missing: name };
  }

  /** The first model of a request that chooses this name, which the agent has. */
  modelNamed(name: string | undefined): Model {
    const { models, named } = this.#sources;
    return (name !== undefined && named.models[name]) || models[0];
  }

  /** A model that is missing counts as the agent's own, for displays. */
  get shownModel(): Model {
    const { model } = this;
    return 'missing' in model ? this.#sources.models[0] : model;
  }

  /** The settings of the next call. A choice that requires a call holds until the request has one. */
  get settings(): ModelSettings {
    const { settings = {} } = this.of();
    const { toolChoice, ...others } = settings;
    const isMet = this.#sources.logState.called && toolChoice !== 'auto' && toolChoice !== 'none';
    return toolChoice === undefined || isMet ? others : settings;
  }

  /** The tools that the request may use. */
  toolsAmong(specs: readonly ToolSpec[]): readonly ToolSpec[] {
    const { tools } = this.of();
    return tools ? specs.filter(({ name }) => tools.includes(name)) : specs;
  }
}
