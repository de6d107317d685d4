/**
 * The meaning of the input line as a chart: PROMPT. Text is sent while nothing runs, steers a run, and answers the
 * question about a call. Invariant: pure; the chart emits acts and performs none. A decision needs input that came
 * some time after its question appeared.
 */
import { assign, emit, not, setup, stateIn } from 'xstate';
import type { Json } from '../../../machines/internal.ts';
import { type Answer, answerOf } from './approval.ts';

/** The call of the current question. */
export interface AskedCall {
  readonly callId: string;
  readonly suspension: number;
  readonly args: Json;
  /** "always" is a possible answer. */
  readonly canAlways: boolean;
  /** "always" may save wider rules too. */
  readonly canWiden?: boolean;
  /** The call gives a plan. */
  readonly isPlan?: boolean;
  /** The person has changed the arguments in an editor. */
  readonly isEdited?: boolean;
}

export type PromptEvent =
  /** Enter, or with `later` the key that queues the text after the run. */
  | { type: 'SUBMIT'; text: string; later?: boolean }
  | { type: 'ESCAPE' }
  /** Ctrl-C. `text` is the text in the line. */
  | { type: 'INTERRUPT'; text: string }
  /** Ctrl-D in an empty line, or the end of the input. */
  | { type: 'END' }
  /** The state of the conversation: a run is active or not, a call waits or not. `draft` is the text in the line. */
  | { type: 'BEGAN' }
  | { type: 'ENDED' }
  | { type: 'ASKED'; call: AskedCall; draft: string }
  | { type: 'DECIDED' }
  /** The editor of the arguments has closed: with other arguments, or without a change. */
  | { type: 'EDITED'; args: Json }
  | { type: 'KEPT' };

export type PromptDecision =
  /** `session`: until the program ends. `kept`: in this directory, also later. */
  | { action: 'approve'; always?: 'session' | 'kept'; isWide?: true }
  | { action: 'deny'; reason?: string }
  | { action: 'edit'; args: Json };

/** The acts of the chart. */
export type PromptAct =
  | { type: 'send' | 'steer' | 'later' | 'command'; text: string }
  | { type: 'cancel' | 'clear' }
  | { type: 'decide'; call: AskedCall; decision: PromptDecision }
  /** Open an editor for the arguments, or show all of them. */
  | { type: 'edit' | 'view'; call: AskedCall }
  /** Put this text into the line. */
  | { type: 'fill'; text: string }
  | { type: 'hint'; text: string }
  | { type: 'leave'; code: 'done' | 'interrupted' };

/** Reads the decision from an input line. With `reason`, the whole line is the reason of a denial. */
type Deciding = 'approve' | 'always' | 'keep' | 'deny' | 'reason' | 'edit';

interface PromptContext {
  call: AskedCall | undefined;
  /** The unfinished text when the question appeared. */
  draft: string;
}

/** A question must be visible this long before an answer counts, because earlier typing was meant for something else. */
export const QUESTION_MS = 400;
/** A second Ctrl-C within this time leaves. */
export const LEAVE_MS = 2_000;

/** A command of the program, or with `!` one of the person's own shell. */
const COMMAND = /^(?:\/(?!\/)[\w:-]*(?:\s|$)|!\s*\S)/;
const isCommand = (text: string): boolean => COMMAND.test(text);
const LATER = /^\/later\s+/;
const EXITS = new Set(['/exit', '/quit']);

function parsed(text: string): { value: Json } | { fault: string } {
  try {
    return { value: JSON.parse(text) as Json };
  } catch (error) {
    return { fault: error instanceof Error ? error.message : String(error) };
  }
}

const setUp = setup({
  types: { context: {} as PromptContext, events: {} as PromptEvent, emitted: {} as PromptAct },
  delays: { question: QUESTION_MS, leave: LEAVE_MS },
  guards: {
    isEmpty: ({ event }) => (event.type === 'SUBMIT' || event.type === 'INTERRUPT') && event.text.trim() === '',
    isExit: ({ event }) => event.type === 'SUBMIT' && EXITS.has(event.text.trim()),
    isCommand: ({ event }) => event.type === 'SUBMIT' && isCommand(event.text.trim()) && !LATER.test(event.text.trim()),
    isLater: ({ event }) => event.type === 'SUBMIT' && (event.later === true || LATER.test(event.text.trim())),
    isJson: ({ event }) => event.type === 'SUBMIT' && 'value' in parsed(event.text),
    answers: ({ context: { call }, event }, { kind }: { kind: Answer['kind'] }) => {
      if (event.type !== 'SUBMIT') return false;
      const answer = answerOf(event.text);
      if (answer.kind !== kind) return false;
      const saves = answer.kind === 'always' || answer.kind === 'keep';
      return !saves || (answer.isWide ? call?.canWiden : call?.canAlways) === true;
    },
  },
  actions: {
    send: emit(({ event }) => ({ type: 'send' as const, text: textIn(event) })),
    steer: emit(({ event }) => ({ type: 'steer' as const, text: textIn(event) })),
    later: emit(({ event }) => ({ type: 'later' as const, text: textIn(event).replace(LATER, '') })),
    command: emit(({ event }) => ({ type: 'command' as const, text: textIn(event) })),
    cancel: emit({ type: 'cancel' as const }),
    clear: emit({ type: 'clear' as const }),
    hint: emit((_, { text }: { text: string }) => ({ type: 'hint' as const, text })),
    fill: emit((_, { text }: { text: string }) => ({ type: 'fill' as const, text })),
    leave: emit((_, { code }: { code: 'done' | 'interrupted' }) => ({ type: 'leave' as const, code })),
    keepDraft: assign(({ context, event }) =>
      event.type === 'ASKED' ? { call: event.call, draft: context.call ? context.draft : event.draft } : {},
    ),
    restoreDraft: emit(({ context }) => ({ type: 'fill' as const, text: context.draft })),
    forgetCall: assign({ call: undefined, draft: '' }),
    inspect: emit(({ context }, { type }: { type: 'edit' | 'view' }) => ({ type, call: callIn(context) })),
    keepEdit: assign(({ context, event }) =>
      event.type === 'EDITED'
        ? { call: { ...callIn(context), args: event.args, canAlways: false, canWiden: false, isEdited: true } }
        : {},
    ),
    decide: emit(({ context, event }, { action }: { action: Deciding }) => ({
      type: 'decide' as const,
      call: callIn(context),
      decision: decisionOf(action, textIn(event), callIn(context)),
    })),
  },
});

function textIn(event: PromptEvent): string {
  return event.type === 'SUBMIT' ? event.text.trim() : '';
}

/** The states of `asking` guarantee a call. */
const callIn = ({ call }: PromptContext): AskedCall =>
  call ?? { callId: '', suspension: 0, args: null, canAlways: false };

function decisionOf(action: Deciding, text: string, call: AskedCall): PromptDecision {
  if (action === 'approve') return call.isEdited ? { action: 'edit', args: call.args } : { action };
  if (action === 'always' || action === 'keep') {
    const answer = answerOf(text);
    const wide = 'isWide' in answer ? { isWide: true as const } : {};
    return { action: 'approve', always: action === 'keep' ? 'kept' : 'session', ...wide };
  }
  if (action === 'edit') {
    const result = parsed(text);
    const args = 'value' in result ? result.value : null;
    return JSON.stringify(args) === JSON.stringify(call.args) ? { action: 'approve' } : { action, args };
  }
  const answer = answerOf(text);
  const reason = action === 'deny' && answer.kind === 'deny' ? answer.reason : text;
  return reason === '' ? { action: 'deny' } : { action: 'deny', reason };
}

const toQuestion = { target: 'asking', actions: ['keepDraft', { type: 'fill', params: { text: '' } }] } as const;

/** Lines that are not messages, in every state that accepts messages. */
const noMessage = [
  { guard: 'isEmpty' },
  { guard: 'isExit', actions: { type: 'leave', params: { code: 'done' } } },
  { guard: 'isCommand', actions: 'command' },
] as const;

export const promptMachine = setUp.createMachine({
  id: 'PROMPT',
  type: 'parallel',
  context: { call: undefined, draft: '' },
  states: {
    work: {
      initial: 'idle',
      states: {
        idle: {
          on: {
            BEGAN: 'busy',
            ASKED: toQuestion,
            SUBMIT: [...noMessage, { guard: 'isLater', actions: 'later' }, { actions: 'send' }],
          },
        },
        busy: {
          on: {
            ENDED: 'idle',
            ASKED: toQuestion,
            ESCAPE: { actions: 'cancel' },
            SUBMIT: [...noMessage, { guard: 'isLater', actions: 'later' }, { actions: 'steer' }],
          },
        },
        asking: {
          initial: 'arriving',
          on: {
            DECIDED: { target: 'busy', actions: ['restoreDraft', 'forgetCall'] },
            // The next question must be read first too.
            ASKED: { ...toQuestion, reenter: true },
          },
          states: {
            arriving: {
              after: { question: 'choosing' },
              on: {
                ESCAPE: { actions: 'cancel' },
                SUBMIT: { actions: { type: 'hint', params: { text: 'this came just now: read it, then answer' } } },
              },
            },
            choosing: {
              on: {
                ESCAPE: { actions: 'cancel' },
                SUBMIT: [
                  {
                    guard: { type: 'answers', params: { kind: 'approve' } },
                    target: 'deciding',
                    actions: { type: 'decide', params: { action: 'approve' } },
                  },
                  {
                    guard: { type: 'answers', params: { kind: 'always' } },
                    target: 'deciding',
                    actions: { type: 'decide', params: { action: 'always' } },
                  },
                  {
                    guard: { type: 'answers', params: { kind: 'keep' } },
                    target: 'deciding',
                    actions: { type: 'decide', params: { action: 'keep' } },
                  },
                  {
                    guard: { type: 'answers', params: { kind: 'deny' } },
                    target: 'deciding',
                    actions: { type: 'decide', params: { action: 'deny' } },
                  },
                  { guard: { type: 'answers', params: { kind: 'ask-reason' } }, target: 'reasoning' },
                  {
                    guard: { type: 'answers', params: { kind: 'edit' } },
                    target: 'editing',
                    actions: { type: 'inspect', params: { type: 'edit' } },
                  },
                  {
                    guard: { type: 'answers', params: { kind: 'view' } },
                    actions: { type: 'inspect', params: { type: 'view' } },
                  },
                  {
                    actions: {
                      type: 'hint',
                      params: { text: 'that is no answer: y, n, n and why, e, v, a, aa, k or kk' },
                    },
                  },
                ],
              },
            },
            reasoning: {
              on: {
                ESCAPE: 'choosing',
                SUBMIT: { target: 'deciding', actions: { type: 'decide', params: { action: 'reason' } } },
              },
            },
            editing: {
              on: {
                // Other arguments must be read first too.
                EDITED: { target: 'arriving', actions: 'keepEdit' },
                KEPT: 'choosing',
                ESCAPE: { target: 'choosing', actions: { type: 'fill', params: { text: '' } } },
                SUBMIT: [
                  {
                    guard: 'isJson',
                    target: 'deciding',
                    actions: { type: 'decide', params: { action: 'edit' } },
                  },
                  {
                    actions: [
                      emit(({ event }) => ({ type: 'fill' as const, text: textIn(event) })),
                      { type: 'hint', params: { text: 'that is no JSON: mend it, or Escape' } },
                    ],
                  },
                ],
              },
            },
            /** Input is ignored until the decision is durable. */
            deciding: {},
          },
        },
      },
    },
    exit: {
      initial: 'staying',
      states: {
        staying: {
          on: {
            INTERRUPT: [
              { guard: not('isEmpty'), actions: 'clear' },
              { guard: not(stateIn({ work: 'idle' })), target: 'leaving', actions: 'cancel' },
              { target: 'leaving' },
            ],
          },
        },
        /** A second Ctrl-C leaves. */
        leaving: {
          after: { leave: 'staying' },
          on: {
            INTERRUPT: [
              { guard: not('isEmpty'), target: 'staying', actions: 'clear' },
              { actions: { type: 'leave', params: { code: 'interrupted' } } },
            ],
            SUBMIT: 'staying',
          },
        },
      },
    },
  },
  on: { END: { actions: { type: 'leave', params: { code: 'done' } } } },
});
