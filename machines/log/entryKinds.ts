/**
 * Every kind of entry: its fields, a sample, and the check of an entry that was read. `vocabulary.ts` declares the types and explains
 * each kind,
 * and `src/words/entryWords.ts` has the words that people read. Invariant: the compiler refuses a kind without a row, and a row that is
 * not its type.
 */
import { groupNames } from '../tools/toolGroups.ts';
import type {
  AgentItem,
  Decision,
  Json,
  LogEntry,
  Message,
  ModelSettings,
  RequestChoices,
  RuntimeEntry,
  Settlement,
  StoredPart,
  ToolCall,
  Usage,
  WireEvent,
} from '../vocabulary.ts';
import {
  amount,
  bytes,
  choice,
  type Fields,
  type FieldsOf,
  type Form,
  flag,
  json,
  list,
  nullable,
  number,
  object,
  oneOf,
  optional,
  ordinal,
  position,
  record,
  required,
  type Shape,
  tagged,
  text,
  words,
  yes,
} from './entryForms.ts';

const part = tagged<StoredPart, 'type'>(
  'type',
  {
    text: { text: required(words) },
    image: { mediaType: required(text), data: required(bytes) },
    file: { mediaType: required(text), name: optional(words), data: required(bytes) },
  },
  {},
);
const content = required(list(part));

const call: FieldsOf<ToolCall> = {
  callId: required(text),
  name: required(text),
  args: json,
  argsText: required(optional(words)),
  group: optional(choice(...groupNames)),
  extra: optional(json),
};
const spoken = { text: required(words), flag: optional(choice('interrupted', 'refusal')) };
const item = tagged<AgentItem, 'type'>(
  'type',
  { assistant: spoken, reasoning: spoken, 'tool-call': call },
  { text: required(text) },
);
const message = tagged<Message, 'role'>('role', {
  user: { content },
  assistant: { content, toolCalls: required(list(object<ToolCall>(call))), extra: optional(json) },
  tool: { callId: required(text), content, isError: flag },
});

const decided = { callId: text, suspension: optional(position), by: optional(words) };
const decision = tagged<Decision, 'action'>(
  'action',
  {
    approve: decided,
    deny: { ...decided, reason: optional(words) },
    edit: { ...decided, args: json },
    answer: { ...decided, payload: json },
  },
  {},
);
const settlement = oneOf<Settlement>({ ran: json }, { didNotRun: yes }, { retry: yes });

const usage = object<Usage>({
  inputTokens: required(amount),
  outputTokens: required(amount),
  cachedInputTokens: amount,
  cacheWriteTokens: amount,
  reasoningTokens: amount,
});
const costUsd = nullable(amount);

const messageId = required(text);
const callId = required(text);
const suspension = required(position);
const queuedKind = choice('steer', 'followUp');

/** A tool choice is a word or an object, which no form describes. Adapters read it. */
const toolChoice = optional(json) as Form<Json> as Form<unknown> as Form<NonNullable<ModelSettings['toolChoice']>> & {
  readonly isOptional: true;
};
const choices: FieldsOf<RequestChoices> = {
  by: optional(words),
  context: optional(json),
  model: optional(text),
  settings: optional(
    object<ModelSettings>({
      temperature: optional(number),
      topP: optional(number),
      maxOutputTokens: optional(ordinal),
      reasoningEffort: optional(words),
      toolChoice,
    }),
  ),
  tools: optional(list(text)),
  output: optional(text),
  outputSchema: optional(choice('unstored')),
};

const hello: StoredPart[] = [{ type: 'text', text: 'hello' }];
const counts: Usage = {
  inputTokens: 1,
  outputTokens: 2,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
};

export type { Fields, Shape } from './entryForms.ts';

export type EntryKind = (WireEvent | RuntimeEntry)['type'];
type Body<Kind extends EntryKind> = Omit<Extract<WireEvent | RuntimeEntry, { type: Kind }>, 'type'>;
interface Declaration<Body> {
  readonly fields: FieldsOf<Body>;
  readonly sample: Body;
}

export const entryKinds: { readonly [Kind in EntryKind]: Declaration<Body<Kind>> } = {
  conversation: {
    fields: {
      schema: ordinal,
      cwd: required(text),
      createdAt: required(number),
      owner: required(optional(text)),
      parent: required(
        optional(object<{ conversationId: string; callId: string }>({ conversationId: required(text), callId })),
      ),
    },
    sample: { schema: 1, cwd: '/home/case', createdAt: 1, parent: { conversationId: 'p', callId: 'c0' } },
  },
  'user-message': {
    fields: { messageId, kind: choice('direct', 'steer', 'followUp'), content, ...choices },
    sample: { messageId: 'm1', kind: 'direct', content: hello, by: 'ann', context: { plan: ['pro', null] } },
  },
  'agent-output': {
    fields: { item: required(item), extra: optional(json) },
    sample: {
      item: { type: 'tool-call', callId: 'c1', name: 'read', args: { a: [1, null, false, ''] }, group: 'read-group' },
      extra: { signed: ['c2ln', 1, null] },
    },
  },
  'tool-result': {
    fields: {
      callId,
      outcome: required(choice('succeeded', 'failed', 'cancelled', 'unknown')),
      content,
      code: optional(text),
    },
    sample: { callId: 'c1', outcome: 'failed', content: hello, code: 'denied' },
  },
  'run-stop': {
    fields: { reason: required(choice('completed', 'interrupted', 'error')), cause: optional(text) },
    sample: { reason: 'interrupted', cause: 'cancelled' },
  },
  'run-started': { fields: {}, sample: {} },
  'run-resumed': { fields: { of: text }, sample: { of: 'run-0' } },
  'run-suspended': { fields: { waiting: required(list(text)) }, sample: { waiting: ['c1', 'c2'] } },
  'message-queued': {
    fields: { messageId, kind: queuedKind, content, ...choices },
    sample: {
      ...{ messageId: 'm2', kind: 'steer', content: hello, model: 'small', tools: ['read'], output: 'invoice' },
      settings: { temperature: 0.5, topP: 1, maxOutputTokens: 9, reasoningEffort: 'low', toolChoice: { tool: 'read' } },
    },
  },
  'message-returned': { fields: { messageId, why: text }, sample: { messageId: 'm2', why: 'closed' } },
  'tool-allowed': { fields: { callId, by: words }, sample: { callId: 'c1', by: 'rule' } },
  'tool-started': {
    fields: { callId, idempotencyKey: text, args: optional(json) },
    sample: { callId: 'c1', idempotencyKey: 'k', args: { b: 0 } },
  },
  'tool-suspended': {
    fields: { callId, suspension, reason: required(words), payload: optional(json), args: optional(json) },
    sample: { callId: 'c1', suspension: 1, reason: 'approval', payload: null, args: { b: 1 } },
  },
  decision: {
    fields: { callId, suspension, decision: required(decision) },
    sample: { callId: 'c1', suspension: 1, decision: { callId: 'c1', action: 'answer', payload: false } },
  },
  'decision-consumed': { fields: { callId, suspension }, sample: { callId: 'c1', suspension: 1 } },
  'call-settled': { fields: { callId, how: required(settlement) }, sample: { callId: 'c1', how: { ran: 'done' } } },
  'state-changed': {
    fields: { callId: optional(text), writes: required(record) },
    sample: { callId: 'c1', writes: { key: { nested: [] } } },
  },
  history: {
    fields: { messages: required(list(message)) },
    sample: { messages: [{ role: 'user', content: [{ type: 'text', text: 'before' }] }] },
  },
  continuation: { fields: { text: required(words), why: text }, sample: { text: 'go on', why: 'empty' } },
  'model-reply': {
    fields: {
      turn: ordinal,
      model: text,
      finish: choice('stop', 'tool-calls', 'length', 'content-filter', 'pause'),
      usage: required(usage),
      costUsd: required(costUsd),
    },
    sample: { turn: 1, model: 'm', finish: 'tool-calls', usage: counts, costUsd: null },
  },
  'model-retry': {
    fields: { turn: ordinal, attempt: ordinal, waitMs: amount, model: text, reason: words },
    sample: { turn: 1, attempt: 2, waitMs: 500, model: 'm', reason: '503' },
  },
  compaction: {
    fields: {
      upToSeq: required(ordinal),
      summary: required(words),
      usage: required(optional(usage)),
      costUsd: required(optional(costUsd)),
      model: optional(text),
    },
    sample: { upToSeq: 3, summary: 'short' },
  },
  'context-warning': { fields: { used: amount, limit: amount }, sample: { used: 80, limit: 100 } },
  'sub-agent': {
    fields: { callId: text, child: text, phase: choice('started', 'ended') },
    sample: { callId: 'c1', child: 's', phase: 'ended' },
  },
  checkpoint: {
    fields: { boundary: choice('UserMessage', 'AssistantTurnCommitted', 'ToolResultsCommitted', 'RunFinished') },
    sample: { boundary: 'RunFinished' },
  },
  renamed: { fields: { title: required(words) }, sample: { title: 'Rent' } },
  rewound: { fields: { toSeq: required(ordinal) }, sample: { toSeq: 3 } },
  notice: { fields: { code: text, text: words }, sample: { code: 'n', text: 't' } },
  diagnostic: { fields: { code: text, detail: optional(json) }, sample: { code: 'd', detail: [0.1, -3, 1e21] } },
  extension: { fields: { name: text, value: json }, sample: { name: 'x', value: null } },
};

/** One entry of each kind. They are numbered from 0, and every second one belongs to a run. */
export const sampleEntries = (conversationId: string): LogEntry[] =>
  Object.entries(entryKinds).map(([type, { sample }], seq) => {
    const runId = seq % 2 === 0 ? null : 'run-1';
    return { seq, at: 1_700_000_000_000 + seq, conversationId, runId, type, ...sample } as unknown as LogEntry;
  });

const isObject = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === 'string';
const isNumber: Check = (value) => typeof value === 'number';
const isAnything: Check = () => true;
const isEvery =
  (check: Check): Check =>
  (value) => {
    if (!Array.isArray(value)) return false;
    // The list's own `every` would skip its holes.
    for (let index = 0; index < value.length; index++) if (!check(value[index])) return false;
    return true;
  };

/** The fields that reading depends on, each with its check. */
const requiredOf = (fields: Fields): [name: string, check: Check][] =>
  Object.entries(fields)
    .filter(([, { isRequired }]) => isRequired)
    .map(([name, { shape, isOptional }]) => {
      const check = checkOf(shape);
      return [name, isOptional ? (value) => value === undefined || check(value) : check];
    });

function hasRequired(fields: Fields): Check {
  const checks = requiredOf(fields);
  return (value) => isObject(value) && checks.every(([name, check]) => check(value[name]));
}

/** Values of a later version pass: a text need not be a known one, and a number need not be in its range. */
function checkOf(shape: Shape): Check {
  switch (shape.kind) {
    case 'text':
    case 'words':
    case 'bytes':
    case 'choice':
      return isText;
    case 'number':
    case 'amount':
    case 'ordinal':
    case 'position':
      return isNumber;
    case 'list':
      return isEvery(checkOf(shape.each));
    case 'nullable': {
      const check = checkOf(shape.value);
      return (value) => value === null || check(value);
    }
    case 'fields':
      return hasRequired(shape.fields);
    case 'tagged': {
      const { tag, other } = shape;
      const checks = new Map(Object.entries(shape.variants).map(([value, fields]) => [value, hasRequired(fields)]));
      const unknown: Check = other ? hasRequired(other) : () => false;
      return (value) => isObject(value) && isText(value[tag]) && (checks.get(value[tag] as string) ?? unknown)(value);
    }
    case 'record':
    case 'oneOf':
      return isObject;
    case 'json':
    case 'flag':
    case 'yes':
      return isAnything;
  }
}

const ENVELOPE: readonly [name: string, check: Check][] = [
  ['seq', isNumber],
  ['type', isText],
];
const CHECKS: ReadonlyMap<unknown, readonly [name: string, check: Check][]> = new Map(
  Object.entries(entryKinds).map(([kind, { fields }]) => [kind, [...ENVELOPE, ...requiredOf(fields as Fields)]]),
);

/** Returns the name of the first field that is missing or unusable. Takes any value. */
export function unusableField(entry: unknown): string | undefined {
  const found = Object(entry) as { [name: string]: unknown };
  return (CHECKS.get(found.type) ?? ENVELOPE).find(([name, check]) => !check(found[name]))?.[0];
}
