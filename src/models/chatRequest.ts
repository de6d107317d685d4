/**
 * A model request → the body of a chat completions request. Rule: pure, and written as JSON once.
 */
import type { Json } from '../../machines/vocabulary.ts';
import { type Form, flag, isList, number, word } from '../form.ts';
import { wireMessages } from './chatMessages.ts';
import { ModelError, type ModelRequest } from './model.ts';

/** What is sent with every request, as it is. */
export interface SentOptions {
  /** Where the request names none. */
  temperature?: number;
  topP?: number;
  reasoningEffort?: string;
  /** Sent where tools are. */
  toolChoice?: Json;
  /** Sent where tools are. */
  parallelToolCalls?: boolean;
  seed?: number;
  stop?: string | string[];
  /** Any other fields of the body. Those that this library writes are written over them. */
  extraBody?: { [key: string]: Json };
}

const isText = (value: unknown): boolean => typeof value === 'string';
const choice: Form = {
  wanted: 'a string or an object',
  takes: (value) => isText(value) || (typeof value === 'object' && value !== null),
};
const whole: Form = { wanted: 'a whole number', takes: Number.isSafeInteger };
const stops: Form = {
  wanted: 'a string or a list of strings',
  takes: (value) => isText(value) || (isList(value) && value.every(isText)),
};
const body: Form = {
  wanted: 'an object',
  takes: (value) => typeof value === 'object' && value !== null && !isList(value),
};
/** Each option, its name on the wire and what it takes. */
const SENT: readonly (readonly [keyof SentOptions, string, Form])[] = [
  ['temperature', 'temperature', number(0)],
  ['topP', 'top_p', number(0)],
  ['reasoningEffort', 'reasoning_effort', word],
  ['seed', 'seed', whole],
  ['stop', 'stop', stops],
];
const SENT_WITH_TOOLS: typeof SENT = [
  ['toolChoice', 'tool_choice', choice],
  ['parallelToolCalls', 'parallel_tool_calls', flag],
];
export const sentForms: readonly (readonly [string, Form])[] = [
  ...[...SENT, ...SENT_WITH_TOOLS].map(([option, , form]) => [option, form] as const),
  ['extraBody', body],
];

const fieldsOf = (sent: SentOptions, table: typeof SENT): { [field: string]: unknown } =>
  Object.fromEntries(table.flatMap(([option, field]) => (sent[option] === undefined ? [] : [[field, sent[option]]])));

interface ChatRequestOptions {
  modelName: string;
  /** The name under which this server takes the output limit. */
  limitField: 'max_tokens' | 'max_completion_tokens';
  /** Where the request names no limit. */
  maxOutputTokens: number | undefined;
  sent: SentOptions;
}

/** The JSON text. Throws ModelError bad-request where the request holds what JSON cannot. */
export function chatRequestBody(request: ModelRequest, options: ChatRequestOptions): string {
  const limit = request.maxOutputTokens ?? options.maxOutputTokens;
  const { sent } = options;
  const hasTools = request.tools.length > 0;
  const body = {
    ...sent.extraBody,
    ...fieldsOf(sent, SENT),
    ...(hasTools && fieldsOf(sent, SENT_WITH_TOOLS)),
    model: options.modelName,
    messages: wireMessages(request.system, request.messages),
    ...(hasTools && { tools: request.tools.map(wireTool) }),
    ...(limit === undefined ? {} : { [options.limitField]: limit }),
    ...(request.temperature === undefined ? {} : { temperature: request.temperature }),
    stream: true,
    stream_options: { include_usage: true },
  };
  try {
    return JSON.stringify(body);
  } catch (cause) {
    throw new ModelError({
      code: 'bad-request',
      message: 'the request cannot be written as JSON: a message or a tool schema is nested too deep or holds no JSON',
      cause,
    });
  }
}

const wireTool = ({ name, description, parameters }: ModelRequest['tools'][number]) => ({
  type: 'function',
  function: { name, description, parameters },
});
