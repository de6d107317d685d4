/**
 * The policies of an agent: the rows of `machines/policyRows.ts`, those that only the host reads, and named bundles. Rule:
 * nested policies are merged key by key over the defaults; an unknown key or an impossible value is refused with a message that
 * names it. The comment of a row is its sentence in docs/policies.md.
 */
import {
  type ChartPolicies,
  type Check,
  chartRows,
  choiceRow,
  defaultsOf,
  type Group,
  modelRows,
  numberRow,
  offRow,
  type Row,
  type Settings,
  type ToolRetry,
  toolRetryRows,
  type ValuesOf,
} from '../machines/internal.ts';
import { checkModel, type Model, type TextCallFormat, textCallFormats } from './models/model.ts';
import { type Plugin, phasesOf } from './plugins/plugin.ts';
import {
  callback,
  check,
  choice,
  flag,
  hasMethods,
  isList,
  isObject,
  list,
  number,
  object,
  orFalse,
  type Validator,
  whole,
} from './validation.ts';

const KINDS = ['warn', 'prune', 'compact', 'exhaust'] as const;
type Kind = (typeof KINDS)[number];
export type ContextPolicy = readonly { kind: Kind; at: number }[];

export const contextDefaults: ContextPolicy = [
  { kind: 'warn', at: 0.8 },
  { kind: 'prune', at: 0.8 },
  { kind: 'compact', at: 0.8 },
  { kind: 'exhaust', at: 0.95 },
];

const isShare = (at: unknown): boolean => typeof at === 'number' && at >= 0 && at <= 1;
const isStep = (step: unknown): boolean =>
  isObject(step) && Object.keys(step).length === 2 && KINDS.includes(step.kind as Kind) && isShare(step.at);

export const contextValidator: Validator = {
  expected: `a list of { kind, at }, each kind (${KINDS.join(', ')}) once, at a share of 0 to 1`,
  test: (value) =>
    isList(value) &&
    value.every(isStep) &&
    new Set((value as ContextPolicy).map(({ kind }) => kind)).size === value.length,
};

/** Returns the thresholds for the chart, or undefined without a known window or an action. */
export function thresholdsOf(policy: ContextPolicy, window: number | undefined): Settings['context'] {
  if (typeof window !== 'number' || Number.isNaN(window)) return undefined;
  return policy.length > 0 ? Object.fromEntries(policy.map(({ kind, at }) => [kind, at])) : undefined;
}

/** Each of the choices at most once. */
const someOf = (...choices: readonly string[]): Validator => ({
  expected: `a list of ${choices.join(', ')}, each at most once`,
  test: (value) =>
    isList(value) && new Set(value).size === value.length && value.every((each) => choices.includes(each as string)),
});

/** A policy that only the host reads, because it is not JSON or no chart uses it. */
interface HostRow<T> {
  readonly default: T;
  readonly check: Validator;
  readonly unit?: string;
}
const hostRow = <T>(value: T, check: Validator): HostRow<T> => ({ default: value, check });
/** A policy without a default. */
interface OptionalRow {
  readonly check: Validator;
}

const hostModelRows = {
  modelRetry: {
    rows: {
      ...modelRows.modelRetry.rows,
      /** Models that are tried in this order after the attempts of the one before are spent. */
      fallbackModels: hostRow<readonly Model[]>(
        [],
        list('models', (each) => hasMethods(each, 'stream')),
      ),
    },
  },
  modelTimeout: {
    rows: {
      /** The longest wait for the first part of a reply. */
      firstPartMs: numberRow(60_000, { unit: 'ms' }),
      /** The longest silence of a stream. It is checked once in that time, so an attempt ends after one to two times this value. */
      idleMs: numberRow(60_000, { unit: 'ms' }),
      /** The longest duration of one attempt. */
      totalMs: offRow(numberRow(0, { unit: 'ms' })),
    },
  },
  /**
   * The forms of calls that are read from the text of a model. Applies to replies without structured calls. The forms are tried
   * in their order, and only the first that finds any is used. The text is not changed. See [calls in text](#calls-in-text).
   */
  textToolCalls: hostRow<false | readonly TextCallFormat[]>(false, orFalse(someOf(...textCallFormats))),
  /**
   * The steps before a model call as the context window fills up: each kind once, `at` a share of the window. Applies only
   * if the model states its `contextWindow`. See [context window](#context-window).
   */
  context: hostRow<ContextPolicy>(contextDefaults, contextValidator),
};

const hostLifeRows = {
  /**
   * The effect of a subscriber of `log$`, `live$` or `view$` that throws. `isolate` logs a diagnostic. `propagate` ends the current
   * run as Error, cause `internal`, with the code `observer`; without a run that can end it logs a diagnostic. In both cases
   * the others receive the value, and the subscriber is detached after three throws.
   */
  observerErrors: choiceRow('isolate', 'propagate'),
};

const hostToolRows = {
  toolRetry: {
    rows: {
      ...toolRetryRows,
      /** Decides whether an error is retried, instead of the library. Only `true` means yes. */
      retryable: { check: callback },
    },
    isOff: true,
  },
} as const;

export const policyRows = { ...chartRows, ...hostToolRows, ...hostModelRows, ...hostLifeRows };

type AnyRow = (Row<unknown> | HostRow<unknown> | OptionalRow) & { readonly isOff?: true };
type AnyGroup = Group<AnyRows>;
interface AnyRows {
  readonly [name: string]: AnyRow | AnyGroup;
}

function checkOf({ check, isOff }: AnyRow): Validator {
  if ('test' in check) return check;
  const validator = validatorOf(check);
  return isOff ? orFalse(validator) : validator;
}

function validatorOf(check: Check): Validator {
  switch (check.kind) {
    case 'choice':
      return choice(...check.choices);
    case 'some':
      return someOf(...check.choices);
    case 'whole':
      return whole(check.least);
    case 'number':
      return number(check.least);
    case 'flag':
      return flag;
  }
}

/** The defaults of rows that have one. */
const defaultsIn = (rows: AnyRows): object =>
  defaultsOf(Object.fromEntries(Object.entries(rows).filter(([, cell]) => 'rows' in cell || 'default' in cell)));

function groupValidator({ rows, isOff }: AnyGroup): Validator {
  const fields = Object.entries(rows).map(([name, cell]) => [
    name,
    'rows' in cell ? groupValidator(cell) : checkOf(cell),
  ]);
  const validator = object(Object.fromEntries(fields), { defaults: defaultsIn(rows) });
  return isOff ? orFalse(validator) : validator;
}

export const policiesValidator = groupValidator({ rows: policyRows });
export const defaults = defaultsIn(policyRows) as Policies;

/** Any part of an object of options: each key is optional, also in nested objects. */
export type DeepPartial<T> = T extends readonly unknown[] | ((...a: never[]) => unknown)
  ? T
  : T extends object
    ? { [K in keyof T]?: DeepPartial<T[K]> }
    : T;

/** The policies that the runtime applies: docs/policies.md describes each of them. */
type HostPolicies = ValuesOf<typeof hostModelRows & typeof hostLifeRows>;
/** Every policy; meaning and defaults in docs/policies.md. */
export interface Policies extends Omit<ChartPolicies, keyof HostPolicies>, HostPolicies {
  /** The retries of failing tools; false for none. */
  toolRetry: false | (ToolRetry & { retryable?(error: unknown): boolean });
}

/** Merges the policies of the host over the defaults. Throws ConfigurationError. */
export const mergedPolicies = (policies: DeepPartial<Policies> | undefined): Policies =>
  check('policies', policies === undefined ? {} : policies, policiesValidator) as Policies;

/** The agent's model and its fallbacks, each once. Throws ConfigurationError for one that cannot be called. */
export const modelsOf = (model: Model, policies: Policies): Model[] => {
  const models = [model, ...policies.modelRetry.fallbackModels];
  models.forEach(checkModel);
  return models.filter((candidate, index) => models.findIndex(({ id }) => id === candidate.id) === index);
};

function toolRetryOf({ retryable: _p, ...retry }: Exclude<Policies['toolRetry'], false>): ToolRetry {
  return retry;
}

const read = new WeakMap<Policies, Settings['policies']>();
/** The policies that charts read, the same for all conversations of an agent. */
function chartPoliciesOf(policies: Policies): Settings['policies'] {
  const existing = read.get(policies);
  if (existing) return existing;
  const { modelTimeout: _t, toolRetry: retry, textToolCalls: _c, observerErrors: _o, context: _x, ...rest } = policies;
  const { fallbackModels: _f, ...modelRetry } = policies.modelRetry;
  const made = { ...rest, modelRetry, toolRetry: retry && toolRetryOf(retry) };
  read.set(policies, made);
  return made;
}

/** Returns the settings that charts read. */
export function settingsOf(
  conversationId: string,
  policies: Policies,
  plugins: readonly Plugin[],
  models: readonly Model[],
  window: number | undefined,
): Settings {
  const context = thresholdsOf(policies.context, window);
  return {
    conversationId,
    policies: chartPoliciesOf(policies),
    phases: phasesOf(plugins),
    models: models.map(({ id }) => id),
    ...(context && { context }),
  };
}

/** Sets of policies for `createAgent({ policies: presets.coding })`. Spread a preset to change some of its policies. */
export const presets: {
  conversation: DeepPartial<Policies>;
  coding: DeepPartial<Policies>;
  requestLoop: DeepPartial<Policies>;
} = {
  /** One act at a time: a busy conversation refuses messages, tools run in order, and partial replies are dropped. */
  conversation: { whileActive: 'reject', toolExecution: 'sequential', partialReply: 'discard' },
  /** A coding agent: messages queue up, reading runs in parallel, writing does not. */
  coding: { whileActive: 'followUp', toolExecution: 'parallelIfReadOnly', promoteFollowUpOn: ['completed'] },
  /** A request loop with callbacks: failed tools are retried, and the text may contain calls. */
  requestLoop: {
    toolExecution: 'parallel',
    toolRetry: { attempts: 3, baseMs: 500, factor: 2, capMs: 5000, jitter: 0.1 },
    partialReply: 'keep',
    observerErrors: 'propagate',
    textToolCalls: ['tool_call', 'function', 'fence', 'json'],
  },
};
