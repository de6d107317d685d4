/**
 * Turns a model request into the body of a Messages request. Invariant: pure. Settings of the request hold in place of
 * the options. A setting that the API refuses beside thinking is left out.
 */
import type { Json } from '../../../machines/vocabulary.ts';
import { flag, isObject, number, type Validator } from '../../validation.ts';
import type { ModelRequest } from '../model.ts';
import { unwritableRequest } from '../wire/httpErrors.ts';
import { wireParameters } from '../wire/toolSchema.ts';
import type { RequestBody } from '../wire/vendorConnection.ts';
import { isRecord } from '../wire/wireJson.ts';
import { CACHED, cachedMessages, wireMessages } from './messagesContent.ts';

/** Options that are sent with every request. */
export interface MessagesOptions {
  /** Not sent while the model thinks. */
  temperature?: number;
  /** Not sent while the model thinks. */
  topP?: number;
  /** `false` sends that the model must not think. Without the option the model's own default holds. */
  thinking?: { budgetTokens: number } | 'adaptive' | false;
  /** In the form of the API. Sent only with tools. */
  toolChoice?: Json;
  /** Marks system text, tools and the last two messages of the user for the provider's cache. Default: true. */
  cache?: boolean;
  /** Other fields of the body. Fields that this library writes override them; `tools` are joined. */
  extraBody?: { [key: string]: Json };
}

/** The least budget that the API accepts. */
const BUDGET_LEAST = 1024;

function isThinking(value: unknown): boolean {
  if (value === 'adaptive' || value === false) return true;
  if (!isRecord(value) || Object.keys(value).some((key) => key !== 'budgetTokens')) return false;
  return Number.isInteger(value.budgetTokens) && Number(value.budgetTokens) >= BUDGET_LEAST;
}

/** The validator of each option. */
export const messagesValidators = {
  temperature: number(0),
  topP: number(0),
  thinking: {
    expected: `"adaptive", false, or { budgetTokens } with a whole number of at least ${BUDGET_LEAST}`,
    test: isThinking,
  },
  toolChoice: { expected: 'an object', test: isObject },
  cache: flag,
  extraBody: { expected: 'an object', test: isObject },
} satisfies Record<string, Validator>;

/**
 * The name under which a message keeps the data that this model needs back. A dated name and its alias are one model, and a
 * signature is valid only for the model that made it.
 */
export const providerOf = (modelName: string): string =>
  `anthropic/${modelName.replace(/([-@]\d{8}|-latest)$/, '').replace(/-0$/, '')}`;

/** The API requires a limit, which must not exceed the model's own. The first match counts. */
const LIMITS: readonly (readonly [RegExp, number])[] = [
  [/claude-(2|instant|3-(opus|sonnet|haiku))/, 4096],
  [/claude-3-5/, 8192],
  [/claude-(3-7|(opus|sonnet)-4(-[01])?([-@]\d{8})?$)/, 32_000],
  [/claude/, 64_000],
];
const LIMIT_OF_OTHERS = 8192;
const defaultLimit = (modelName: string): number =>
  LIMITS.find(([pattern]) => pattern.test(modelName))?.[1] ?? LIMIT_OF_OTHERS;

type Fields = { readonly [field: string]: Json };
const objectIn = (body: MessagesOptions['extraBody'], field: string): Fields => {
  const value = body?.[field];
  return isRecord(value) ? (value as Fields) : {};
};

/** Returns the JSON text and its headers. Throws ModelError bad-request if the request contains something that JSON cannot represent. */
export function messagesBody(
  request: ModelRequest,
  modelName: string,
  options: MessagesOptions & { maxOutputTokens?: number; headers?: Record<string, string> },
): RequestBody {
  const { extraBody, cache = true } = options;
  const limit = request.maxOutputTokens ?? options.maxOutputTokens ?? defaultLimit(modelName);
  const tools = wireTools(request, options);
  const toolChoice = tools.length > 0 ? choiceOf(request, options) : undefined;
  const thinking = thinkingField(options, { limit, toolChoice, isBound: isBound(modelName) });
  const messages = wireMessages(request.messages, providerOf(modelName));
  const body = {
    ...extraBody,
    model: modelName,
    max_tokens: limit,
    ...(request.system.trim() !== '' && { system: cache ? [textBlock(request.system, CACHED)] : request.system }),
    messages: cache ? cachedMessages(messages) : messages,
    ...(tools.length > 0 && { tools }),
    ...(toolChoice !== undefined && { tool_choice: toolChoice }),
    ...(thinking && { thinking }),
    ...(thinks(thinking) ? {} : samplingFields(request, options)),
    ...outputField(request, options),
    stream: true,
  };
  const headers = completedHeaders(body, options.headers);
  try {
    return { text: JSON.stringify(body), ...(headers && { headers }) };
  } catch (cause) {
    throw unwritableRequest(cause);
  }
}

const VERSION = 'anthropic-version';
/** Later versions of the API refuse these fields for every model. This version accepts them for older models. */
const SAMPLING = ['temperature', 'top_p', 'top_k'];
const SAMPLING_VERSION = '2023-06-01';

const BETA = 'anthropic-beta';
const BINDING_BETA = 'thinking-binding-controls-2026-08-01';

/** Returns a function that completes the prepared headers, or undefined if they are complete. `own`: the headers of the caller. */
function completedHeaders(
  body: { readonly thinking?: object | undefined },
  own: Readonly<Record<string, string>> = {},
) {
  const hasVersion = Object.keys(own).some((name) => name.toLowerCase() === VERSION);
  const isSampled = !hasVersion && SAMPLING.some((field) => field in body);
  const isBound = body.thinking !== undefined && 'block_binding' in body.thinking;
  if (!isSampled && !isBound) return undefined;
  return (prepared: Headers): Headers => {
    const headers = new Headers(prepared);
    if (isSampled) headers.set(VERSION, SAMPLING_VERSION);
    if (isBound && !headers.get(BETA)?.includes(BINDING_BETA)) headers.append(BETA, BINDING_BETA);
    return headers;
  };
}

const textBlock = (text: string, marks: object) => ({ type: 'text', text, ...marks });

/** Tools of the provider, which it executes itself, may be in the extra body. */
function wireTools({ tools }: ModelRequest, { extraBody, cache = true }: MessagesOptions): readonly object[] {
  const others: readonly unknown[] = Array.isArray(extraBody?.tools) ? extraBody.tools : [];
  const own = tools.map(({ name, description, parameters }) => {
    return { name, description, input_schema: wireParameters(parameters) };
  });
  const all: readonly object[] = [...own, ...others.filter(isRecord)];
  return cache ? all.map((tool, index) => (index === all.length - 1 ? { ...CACHED, ...tool } : tool)) : all;
}

function choiceOf({ toolChoice }: ModelRequest, options: MessagesOptions): Json | undefined {
  if (toolChoice === undefined) return options.toolChoice;
  if (typeof toolChoice === 'object') return { type: 'tool', name: toolChoice.tool };
  return { type: toolChoice === 'required' ? 'any' : toolChoice };
}

/** From version 5.1, a model accepts its thinking only after the same system text, tools and messages as when it thought. */
function isBound(modelName: string): boolean {
  const [, major = 0, minor = 0] = /claude-[a-z]+-(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)/.exec(modelName) ?? [];
  return Number(major) > 5 || (Number(major) === 5 && Number(minor) > 0);
}

/** Hooks, summaries and removed results change what comes before the thinking. The API then drops it in place of an error. */
const DROPPED = { block_binding: { prefix_mismatch_behavior: 'drop_block' } } as const;

interface ThinkingField {
  readonly type?: Json;
  readonly budget_tokens?: Json;
  readonly block_binding?: Json;
}

/** The API refuses thinking where a call is forced, and a budget that is not below the limit. */
function thinkingField(
  { thinking, extraBody }: MessagesOptions,
  { limit, toolChoice, isBound }: { limit: number; toolChoice: Json | undefined; isBound: boolean },
): ThinkingField | undefined {
  if (thinking === undefined && !isBound) return undefined;
  if (thinking === false) return { type: 'disabled' };
  if (isRecord(toolChoice) && (toolChoice.type === 'any' || toolChoice.type === 'tool')) return undefined;
  const own = objectIn(extraBody, 'thinking');
  const others = isBound ? { ...DROPPED, ...own } : own;
  // A bound model thinks adaptively unless the extra body says otherwise.
  if (thinking === 'adaptive') return { ...others, type: 'adaptive' };
  if (thinking === undefined)
    return (own.type ?? 'adaptive') === 'adaptive' ? { ...others, type: 'adaptive' } : undefined;
  if (thinking.budgetTokens >= limit) return undefined;
  return { ...others, type: 'enabled', budget_tokens: thinking.budgetTokens };
}

const thinks = (field: ThinkingField | undefined): boolean => field !== undefined && field.type !== 'disabled';

function samplingFields(request: ModelRequest, options: MessagesOptions) {
  const temperature = request.temperature ?? options.temperature;
  const topP = request.topP ?? options.topP;
  return { ...(temperature !== undefined && { temperature }), ...(topP !== undefined && { top_p: topP }) };
}

/** The effort counts only for a model that thinks adaptively. */
function outputField({ output, reasoningEffort }: ModelRequest, { thinking, extraBody }: MessagesOptions) {
  const fields = {
    ...objectIn(extraBody, 'output_config'),
    ...(thinking === 'adaptive' && reasoningEffort !== undefined && { effort: reasoningEffort }),
    ...(output && { format: { type: 'json_schema', schema: output.schema } }),
  };
  return Object.keys(fields).length > 0 && { output_config: fields };
}
