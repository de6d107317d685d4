/**
 * The options of `send`: the choices of a message for its request. Invariant: everything is checked at the call, and the log receives a
 * JSON copy, so that a later change of the host's objects changes nothing.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec';
import { choicesOf, type Json, type ModelSettings, type RequestChoices } from '../../machines/internal.ts';
import type { Policies } from '../agentPolicies.ts';
import { ConfigurationError } from '../errors.ts';
import { exactJson } from '../json.ts';
import type { RequestNames } from '../runtime/currentRequest.ts';
import {
  anything,
  checkOptionsOf,
  choice,
  hasMethods,
  invalidOption,
  isObject,
  nonEmptyText,
  number,
  object,
  standardSchema,
  strings,
  type Validator,
  whole,
} from '../validation.ts';

/** The options of `send`. Most of them hold for the whole request, also after a restart. */
export interface SendOptions {
  /** Aborts the message while it waits, and its run. */
  signal?: AbortSignal;
  /** Sends the message as a steer or a follow-up, in place of the choice of the policies. */
  kind?: 'steer' | 'followUp';
  /** The schema of the final answer in place of the agent's own, or the name of one of the agent's `outputs`. Only a name outlives the process. */
  output?: StandardSchemaV1 | string;
  /** The message's own id. A second message with the same id is the same message: its receipt and run are returned again. */
  messageId?: string;
  /** The effect of the message while a call waits; default: the policy of the same name. */
  whileSuspended?: Policies['whileSuspended'];
  /** The name of the person or system that asks, at most 200 characters. The log contains it, and models do not receive it. */
  by?: string;
  /** The value that tools and plugins receive as `origin`, at most 64 KiB. It is logged, and models do not receive it. */
  context?: Json;
  /** The name of one of the agent's `models`. It holds for the cycle, over restarts. */
  model?: string;
  /** Settings of the model for the cycle, in place of its own. */
  settings?: ModelSettings;
  /** The names of the agent's tools that the cycle may use; default: all. */
  tools?: readonly string[];
}

const CONTEXT_BYTES = 65_536;

/** An id is part of the ids of runs and effects, which `/` separates. */
const messageIdValidator = {
  expected: 'a text of 1 to 200 characters without / and control characters',
  test: (value: unknown) => typeof value === 'string' && /^[^/\p{Cc}]{1,200}$/u.test(value),
};

/** Throws ConfigurationError for an id that no run may have. */
export function checkResumptionId(id: string): void {
  if (!messageIdValidator.test(id)) throw invalidOption('the id of a resumption', messageIdValidator, id);
}

const choices = choice('auto', 'none', 'required');
const settingsValidator = object({
  temperature: number(0),
  topP: number(0),
  maxOutputTokens: whole(1),
  reasoningEffort: nonEmptyText,
  toolChoice: {
    expected: `${choices.expected}, or { tool: name }`,
    test: (value) =>
      choices.test(value) || (isObject(value) && Object.keys(value).length === 1 && typeof value.tool === 'string'),
  },
});

const sendValidator = object({
  kind: choice('steer', 'followUp'),
  messageId: messageIdValidator,
  output: {
    ...standardSchema,
    expected: `${standardSchema.expected}, or the name of one of the agent’s outputs`,
    test: (value) => nonEmptyText.test(value) || standardSchema.test(value),
  },
  signal: { expected: 'an AbortSignal', test: (value) => hasMethods(value, 'addEventListener'), secret: true },
  whileSuspended: choice('followUp', 'reject', 'denyAndRun'),
  by: {
    expected: 'a text of 1 to 200 characters',
    test: (value) => typeof value === 'string' && /^.{1,200}$/su.test(value),
    secret: true,
  } satisfies Validator,
  context: anything,
  model: nonEmptyText,
  settings: settingsValidator,
  tools: strings,
});

/** The names that requests to an agent may choose from. */
export interface AgentNames {
  readonly named: RequestNames;
  /** The current names. */
  readonly tools: () => readonly string[];
}

/**
 * The options as they were checked: each is read once, because a getter could answer differently the next time. Throws
 * ConfigurationError for an unknown option, kind or signal, because it would reach the log.
 */
export const checkSending = (options: SendOptions): SendOptions =>
  checkOptionsOf('send', options, sendValidator) as SendOptions;

/** The options as the log stores them. Throws ConfigurationError for a name that the agent does not have. */
export function choicesIn(options: SendOptions, { named, tools: own }: AgentNames): RequestChoices {
  const { by, context, model, settings, tools, output } = options;
  if (model !== undefined) mustBeAvailable('model', model, Object.keys(named.models));
  if (typeof output === 'string') mustBeAvailable('output', output, Object.keys(named.outputs));
  for (const tool of tools ?? []) mustBeAvailable('tools', tool, own());
  const { toolChoice } = settings ?? {};
  if (typeof toolChoice === 'object') mustBeAvailable('settings.toolChoice', toolChoice.tool, tools ?? own());
  return choicesOf({
    by,
    context: context === undefined ? undefined : jsonContext(context),
    model,
    settings: settings && copied(settings),
    tools: tools && [...tools],
    output: typeof output === 'string' ? output : undefined,
    outputSchema: typeof output === 'object' || typeof output === 'function' ? 'unstored' : undefined,
  });
}

/** Fields that are undefined count as absent. */
const copied = (settings: ModelSettings): ModelSettings =>
  Object.fromEntries(Object.entries(structuredClone(settings)).filter(([, value]) => value !== undefined));

function mustBeAvailable(option: string, name: string, available: readonly string[]): void {
  if (available.includes(name)) return;
  const names = available.length === 0 ? 'there are none' : `known are ${available.join(', ')}`;
  throw new ConfigurationError(
    `send: the option ${option} names ${JSON.stringify(name)}, which the agent does not have; ${names}`,
  );
}

function jsonContext(context: Json): Json {
  const read = exactJson(context, CONTEXT_BYTES);
  if (read.kind === 'parsed') return read.value;
  throw new ConfigurationError(`send: the option context must be JSON of at most ${CONTEXT_BYTES} bytes (${read.why})`);
}
