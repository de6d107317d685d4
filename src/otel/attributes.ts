/**
 * The names of attributes and metrics, and the values of spans: the semantic conventions of OpenTelemetry for generative AI.
 * Rule: every such name is in this file. Messages, arguments and results are made only where contents are wanted.
 */
import type { Attributes } from '@opentelemetry/api';
import { type Attachment, type Json, type Message, type StoredPart, textOfContent } from '../../machines/internal.ts';
import type { ModelRequest } from '../models/model.ts';
import type { EndedRun, Work, WorkValue } from '../plugins/workObserver.ts';

export const OPERATION = 'gen_ai.operation.name';
export const CONVERSATION = 'gen_ai.conversation.id';
const PROVIDER = 'gen_ai.provider.name';
const AGENT_NAME = 'gen_ai.agent.name';
const AGENT_ID = 'gen_ai.agent.id';
const REQUEST_MODEL = 'gen_ai.request.model';
export const TOOL_NAME = 'gen_ai.tool.name';
export const TOKEN_TYPE = 'gen_ai.token.type';
export const ERROR_TYPE = 'error.type';
const STREAM = 'gen_ai.request.stream';
const OUTPUT_TYPE = 'gen_ai.output.type';
const TEMPERATURE = 'gen_ai.request.temperature';
const TOP_P = 'gen_ai.request.top_p';
const MAX_TOKENS = 'gen_ai.request.max_tokens';
const FINISH_REASONS = 'gen_ai.response.finish_reasons';
const INPUT_TOKENS = 'gen_ai.usage.input_tokens';
const OUTPUT_TOKENS = 'gen_ai.usage.output_tokens';
const CACHE_READ_TOKENS = 'gen_ai.usage.cache_read.input_tokens';
const CACHE_WRITE_TOKENS = 'gen_ai.usage.cache_creation.input_tokens';
const REASONING_TOKENS = 'gen_ai.usage.reasoning.output_tokens';
const TOOL_DESCRIPTION = 'gen_ai.tool.description';
const TOOL_DEFINITIONS = 'gen_ai.tool.definitions';
const TOOL_CALL_ID = 'gen_ai.tool.call.id';
const TOOL_TYPE = 'gen_ai.tool.type';
const SYSTEM = 'gen_ai.system_instructions';
const INPUT_MESSAGES = 'gen_ai.input.messages';
const OUTPUT_MESSAGES = 'gen_ai.output.messages';
const TOOL_ARGUMENTS = 'gen_ai.tool.call.arguments';
const TOOL_RESULT = 'gen_ai.tool.call.result';
const COST = 'runchart.cost_usd';
const RUN = 'runchart.run.id';
const TERMINATION = 'runchart.termination';
const CAUSE = 'runchart.cause';
export const OUTCOME = 'runchart.tool.outcome';

/** The boundaries of histograms: 14 of them, each the product of the one before. */
const boundaries = (first: number, factor: number) => ({
  explicitBucketBoundaries: Array.from({ length: 14 }, (_, index) => Number((first * factor ** index).toPrecision(8))),
});

export const METRICS = {
  tokens: [
    'gen_ai.client.token.usage',
    { unit: '{token}', description: 'Tokens of model calls', advice: boundaries(1, 4) },
  ],
  duration: [
    'gen_ai.client.operation.duration',
    { unit: 's', description: 'Duration of runs, model calls and tools', advice: boundaries(0.01, 2) },
  ],
  outcomes: ['runchart.tool.outcomes', { unit: '{call}', description: 'Results of tool calls by outcome' }],
} as const;

/** The name of a run's span context in an `extension` entry. */
export const TRACE = 'runchart.trace';

/** The agent as traces name it. */
export interface TracedAgent {
  name?: string | undefined;
  id?: string | undefined;
}

export const agentAttributes = ({ name, id }: TracedAgent): Attributes => ({
  ...(name !== undefined && { [AGENT_NAME]: name }),
  ...(id !== undefined && { [AGENT_ID]: id }),
});

export const runAttributes = (conversationId: string, runId: string): Attributes => ({
  [OPERATION]: 'invoke_agent',
  [CONVERSATION]: conversationId,
  [RUN]: runId,
});

export interface SpanOutcome {
  attributes: Attributes;
  /** Undefined if it went well. */
  error?: string | undefined;
}

const WELL: readonly string[] = ['NaturalEnd', 'PluginRequested', 'Suspended'];

export function runOutcome({ termination, cause, error, usage, costUsd }: EndedRun): SpanOutcome {
  const attributes = {
    ...usageAttributes(usage, costUsd),
    [TERMINATION]: termination,
    ...(cause !== undefined && { [CAUSE]: cause }),
  };
  return { attributes, error: WELL.includes(termination) ? undefined : (error?.code ?? termination) };
}

const usageAttributes = (usage: EndedRun['usage'], costUsd: number | null): Attributes => ({
  [INPUT_TOKENS]: usage.inputTokens,
  [OUTPUT_TOKENS]: usage.outputTokens,
  [CACHE_READ_TOKENS]: usage.cachedInputTokens,
  [CACHE_WRITE_TOKENS]: usage.cacheWriteTokens,
  ...(usage.reasoningTokens > 0 && { [REASONING_TOKENS]: usage.reasoningTokens }),
  ...(costUsd !== null && { [COST]: costUsd }),
});

type TracedModel = Extract<Work, { kind: 'model' }>['model'];

export const modelAttributes = ({ id, provider }: TracedModel): Attributes => ({
  [REQUEST_MODEL]: id,
  ...(provider !== undefined && { [PROVIDER]: provider }),
});

/** The attributes of a metric. Each has few distinct values. */
export const metricAttributes = (work: Work): Attributes =>
  work.kind === 'model'
    ? { [OPERATION]: 'chat', ...modelAttributes(work.model) }
    : { [OPERATION]: 'execute_tool', [TOOL_NAME]: work.call.name };

export const workName = (work: Work): string =>
  work.kind === 'model' ? `chat ${work.model.id}` : `execute_tool ${work.call.name}`;

/** The contents that a span may show. */
interface Shown {
  contents: boolean;
  /** Removes secrets. */
  redact: <T>(value: T) => T;
}

/** `description`: that of the tool, if it is known. */
export function workAttributes(work: Work, { contents, redact }: Shown, description?: string): Attributes {
  if (work.kind === 'model') {
    const { temperature, topP, maxOutputTokens, output } = work.request;
    return {
      ...metricAttributes(work),
      [STREAM]: true,
      ...(output && { [OUTPUT_TYPE]: 'json' }),
      ...(temperature !== undefined && { [TEMPERATURE]: temperature }),
      ...(topP !== undefined && { [TOP_P]: topP }),
      ...(maxOutputTokens !== undefined && { [MAX_TOKENS]: maxOutputTokens }),
      ...(contents && requestContents(redact(work.request))),
    };
  }
  const { callId, args } = work.call;
  return {
    ...metricAttributes(work),
    [TOOL_CALL_ID]: callId,
    [TOOL_TYPE]: 'function',
    ...(description !== undefined && { [TOOL_DESCRIPTION]: redact(description) }),
    ...(contents && { [TOOL_ARGUMENTS]: JSON.stringify(redact(args)) }),
  };
}

/** The code of an error has no secret either: a model writes it. */
export function workOutcome(work: Work, value: WorkValue, { contents, redact }: Shown): SpanOutcome {
  if (value.kind === 'reply' && work.kind === 'model') {
    const { finish, usage } = value;
    return {
      attributes: {
        ...usageAttributes(usage, work.costOf(usage)),
        [FINISH_REASONS]: [finish],
        ...(contents && { [OUTPUT_MESSAGES]: JSON.stringify(redact([replyMessage(value)])) }),
      },
    };
  }
  const outcome = OUTCOMES[value.kind];
  const result = contents && 'content' in value ? { [TOOL_RESULT]: textOfContent(redact(value.content)) } : {};
  const attributes = { ...(outcome && { [OUTCOME]: outcome }), ...result };
  if (value.kind !== 'erred' && value.kind !== 'failed') return { attributes };
  const isCancelled = work.isCancelled();
  const error = isCancelled ? 'cancelled' : redact(value.code);
  return { attributes: { ...attributes, ...(isCancelled && outcome && { [OUTCOME]: 'cancelled' }) }, error };
}

/** The outcomes of executions by the kind of their value. */
const OUTCOMES: { readonly [kind: string]: string } = { succeeded: 'succeeded', erred: 'failed', pending: 'suspended' };

type Part = { [key: string]: Json };
/** The conventions name image, video and audio. */
const modalityOf = ({ mediaType }: Attachment): string => /^(image|video|audio)\//.exec(mediaType)?.[1] ?? 'document';
const textParts = (content: readonly StoredPart[]): Part[] =>
  content.map((part) =>
    part.type === 'text'
      ? { type: 'text', content: part.text }
      : { type: 'blob', modality: modalityOf(part), mime_type: part.mediaType },
  );
const callPart = (id: string, name: string, args: Json): Part => ({ type: 'tool_call', id, name, arguments: args });
function messageOf(message: Message): { role: string; parts: Part[] } {
  const { role, content } = message;
  if (message.role === 'tool')
    return { role, parts: [{ type: 'tool_call_response', id: message.callId, response: textOfContent(content) }] };
  const calls = message.role === 'assistant' ? message.toolCalls : [];
  return { role, parts: [...textParts(content), ...calls.map((call) => callPart(call.callId, call.name, call.args))] };
}

const requestContents = ({ system, messages, tools }: ModelRequest): Attributes => ({
  ...(system !== '' && { [SYSTEM]: JSON.stringify([{ type: 'text', content: system }]) }),
  [INPUT_MESSAGES]: JSON.stringify(messages.map(messageOf)),
  ...(tools.length > 0 && {
    [TOOL_DEFINITIONS]: JSON.stringify(tools.map((tool) => ({ type: 'function', ...tool }))),
  }),
});

/** The conventions have five reasons for a message, written like this. */
const FINISHES: { readonly [reason: string]: string } = {
  'tool-calls': 'tool_call',
  'content-filter': 'content_filter',
};

function replyMessage({ items, finish }: Extract<WorkValue, { kind: 'reply' }>) {
  const parts = items.map((item): Part => {
    if (item.type === 'call') return callPart(item.call.callId ?? '', item.call.name, item.call.args);
    if (item.type === 'tool-call') return callPart(item.callId, item.name, item.args);
    return { type: item.type === 'reasoning' ? 'reasoning' : 'text', content: item.text };
  });
  return { role: 'assistant', parts, finish_reason: FINISHES[finish] ?? finish };
}
