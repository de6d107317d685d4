/**
 * Converts the entries of a conversation to facts for a logger, one for each entry. Invariant: a fact comes from a durable entry, so it
 * contains no
 * secret that is configured, and never the content of messages, arguments or results. A logger that throws changes nothing.
 */
import type { LogEntry, LogState } from '../../machines/internal.ts';
import { callHarmlessly } from '../timeLimit.ts';
import type { ConversationLog } from './conversationLog.ts';

export type FactLevel = 'debug' | 'info' | 'warn' | 'error';
/** Each method receives one fact, an object of JSON. Absent ones receive nothing. */
export type Logger = { [Level in FactLevel]?: (fact: object) => void };

type Fact = readonly [level: FactLevel, event: string, fields?: object];

/** The level, the name and the fields of an entry. Names follow the kinds of entries. */
function factOf(entry: LogEntry, { calls }: Pick<LogState, 'calls'>): Fact {
  const toolOf = (callId: string): string | undefined => calls.get(callId)?.name;
  switch (entry.type) {
    case 'user-message':
      return ['info', entry.type, { messageId: entry.messageId, kind: entry.kind, by: entry.by, model: entry.model }];
    case 'run-started':
      return ['info', entry.type];
    case 'run-resumed':
      return ['info', entry.type, { of: entry.of }];
    case 'run-suspended':
      return ['info', entry.type, { waiting: entry.waiting }];
    case 'run-stop':
      return [LEVELS[entry.reason] ?? 'error', entry.type, { reason: entry.reason, cause: entry.cause }];
    case 'model-reply': {
      const { turn, model, finish, usage, costUsd } = entry;
      return ['info', entry.type, { turn, model, finish, usage, costUsd }];
    }
    case 'model-retry': {
      const { turn, attempt, waitMs, model, reason } = entry;
      return ['warn', entry.type, { turn, attempt, waitMs, model, reason }];
    }
    case 'tool-started':
      return ['debug', entry.type, { callId: entry.callId, tool: toolOf(entry.callId) }];
    case 'tool-suspended':
      return ['info', entry.type, { callId: entry.callId, tool: toolOf(entry.callId), reason: entry.reason }];
    case 'tool-result': {
      const { callId, outcome, code } = entry;
      return [outcome === 'succeeded' ? 'info' : 'warn', entry.type, { callId, tool: toolOf(callId), outcome, code }];
    }
    case 'decision':
      return ['info', entry.type, { callId: entry.callId, action: entry.decision.action, by: entry.decision.by }];
    case 'context-warning':
      return ['warn', entry.type, { used: entry.used, limit: entry.limit }];
    case 'diagnostic':
      return ['warn', entry.type, { code: entry.code, detail: entry.detail }];
    case 'notice':
      return ['info', entry.type, { code: entry.code, text: entry.text }];
    default:
      return ['debug', entry.type];
  }
}

const LEVELS: { readonly [reason: string]: FactLevel } = { completed: 'info', interrupted: 'warn' };

/** Passes each later entry on as a fact. */
export function logFacts(
  logger: Logger,
  { log, logState }: { log: Pick<ConversationLog, 'watch'>; logState: LogState },
): void {
  log.watch((entry) => {
    const [level, event, fields = {}] = factOf(entry, logState);
    const { conversationId: conversation, runId: run, seq, at } = entry;
    const definedFields = Object.entries({ ...fields }).filter(([, value]) => value !== undefined);
    const fact = { event, conversation, ...(run !== null && { run }), seq, at, ...Object.fromEntries(definedFields) };
    callHarmlessly(() => logger[level]?.(fact));
  });
}
