/**
 * Explains in the user's terms why a case fails: which plugin, hook, predicate or tool behaved differently than
 * expected. Invariant: a cause is reported before its consequences in the charts.
 */
import type { Completion, EffectRequest, EffectValue, Json, LogEntry } from '../../../machines/internal.ts';
import { thrownText } from '../../errors.ts';
import { isObject } from '../../validation.ts';
import { type Behaviour, expectedOf, isOfSchema, type Surroundings } from './search/callBehaviour.ts';
import { phaseAnswer } from './search/ownAnswers.ts';

/** A failure in the user's own code. */
export interface OwnFailure {
  readonly who: string;
  readonly message: string;
}

type Detail = { readonly [field: string]: Json };
/** The description of each failure, by the code of the library's diagnostic. */
const FAILURES: Readonly<Record<string, (detail: Detail) => string>> = {
  plugin_error: ({ plugin, phase }) => `the plugin ${JSON.stringify(plugin)} in ${String(phase)}`,
  hook_error: ({ event }) => `a hook of ${String(event)}`,
  approval_error: ({ tool }) => `needsApproval of ${String(tool)}`,
  permission_decide_error: ({ tool }) => `decide of the permissions, asked about ${String(tool)}`,
  listener_error: ({ callId }) => `a listener on the signal of ${String(callId)}`,
};

/** Returns the failures that did not end a run. */
export function ownFailures(log: readonly LogEntry[]): OwnFailure[] {
  const failures = new Map<string, OwnFailure>();
  for (const entry of log) {
    if (entry.type !== 'diagnostic' || !isObject(entry.detail)) continue;
    const detail = entry.detail as Detail;
    const who = FAILURES[entry.code]?.(detail);
    if (who !== undefined) failures.set(who, { who, message: String(detail.message) });
  }
  return [...failures.values()];
}

export const failureText = ({ who, message }: OwnFailure): string => `${who} failed: ${message}`;

/** Returns the error with its causes first. */
export function explained(error: unknown, causes: Iterable<string>): unknown {
  const message = error instanceof Error ? error.message : thrownText(error);
  const fresh = [...causes].filter((cause) => !message.includes(cause));
  return fresh.length === 0 ? error : new Error([...fresh, message].join('\n  '), { cause: error });
}

/** Records answers that differ from those of the first inspection of the agent. */
export class ChangedAnswers {
  readonly texts = new Set<string>();
  readonly #surroundings: Surroundings;
  readonly #calls: readonly Behaviour[];

  constructor(surroundings: Surroundings, calls: readonly Behaviour[]) {
    this.#surroundings = surroundings;
    this.#calls = calls;
  }

  /** `made`: the script determines the end of the call. */
  compare(request: EffectRequest, completion: Completion, made: boolean): void {
    // An answer that violates its schema is part of the script.
    if (completion.type === 'effect.failed' && completion.error.code !== 'output_invalid')
      this.texts.add(completion.error.message);
    if (completion.type !== 'effect.done') return;
    if (request.kind === 'phase') this.#comparePhase(request, completion.value);
    if (request.kind === 'gate' || (request.kind === 'tool' && !made)) this.#compareCall(request, completion.value);
  }

  #comparePhase(request: Extract<EffectRequest, { kind: 'phase' }>, value: EffectValue): void {
    if (request.termination !== undefined) return;
    const before = phaseAnswer(this.#surroundings, request).kind;
    const kind = isOfSchema(value) ? 'done' : value.kind;
    if (kind === before) return;
    const name = request.phases.join(' and ');
    this.texts.add(
      `${name} of turn ${request.turn} answered ${kind}, and ${before} when the agent was looked at: it depends on more than the turn`,
    );
  }

  #compareCall(request: Extract<EffectRequest, { kind: 'gate' | 'tool' }>, value: EffectValue): void {
    const behaviour = this.#calls[Number(request.callId.slice('call'.length)) - 1];
    const before = behaviour && expectedOf(behaviour, request);
    if (!before || before.kind === value.kind || (value.kind === 'erred' && value.code === 'cancelled')) return;
    const what = request.kind === 'gate' ? `the check of ${behaviour.tool}` : behaviour.tool;
    this.texts.add(
      `${what} answered ${answerText(value)}, and ${answerText(before)} when the agent was looked at: it depends on more than the arguments`,
    );
  }
}

const WORDS: Partial<Readonly<Record<EffectValue['kind'], string>>> = {
  allow: 'that the call runs',
  suspend: 'that somebody is asked',
  block: 'that the call is blocked',
  refuse: 'that the arguments are refused',
  succeeded: 'a result',
  erred: 'a failure',
  pending: 'that it waits',
};

function answerText(value: EffectValue): string {
  const words = WORDS[value.kind] ?? value.kind;
  if ('text' in value && typeof value.text === 'string') return `${words} (${value.text})`;
  if (value.kind !== 'erred') return words;
  return `${words} (${value.content.map((part) => (part.type === 'text' ? part.text : part.type)).join(' ')})`;
}
