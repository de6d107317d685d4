/**
 * A story of a conversation as moves, in their order. Invariant: a move is JSON, with words that need no knowledge of
 * the charts. The end of a call is not a move, because the real tool determines it.
 */
import type { Decision, FinishReason, Json, Phase } from '../../machines/internal.ts';

/** A tool call that a scripted model makes. */
export interface SaidCall {
  /** The name of the tool. */
  readonly name: string;
  /** The arguments. */
  readonly args: Json;
}

/**
 * The agent's own work during a move: a phase with plugins or hooks (`beforeToolExecute` is any check of a call), or
 * the storage of a run's end (`storing`).
 */
export type During = Phase | 'storing';

/** Calls are counted from 1, in the order in which the model makes them. */
export type Move =
  /** `text` is the content of a message. `fills` replaces a long one, as a share of the model's context window. */
  | {
      readonly do: 'send' | 'steer' | 'followUp';
      readonly text?: string;
      readonly fills?: number;
      readonly during?: During;
    }
  | { readonly do: 'cancel'; readonly during?: During }
  | { readonly do: 'resume' }
  /** The process dies, and another one opens the conversation. The tool of call `lost` has run to its end: only its result is lost. */
  | { readonly do: 'crash'; readonly lost?: number; readonly during?: During }
  /** The model has summed up earlier messages, since its context window filled up. */
  | { readonly do: 'sumUp' }
  /** The last message that waits in the queue is withdrawn. */
  | { readonly do: 'takeBack' }
  /** The time that the policy `limits.runMs` gives is up. */
  | { readonly do: 'deadline' }
  | {
      readonly do: 'reply';
      readonly text?: string;
      readonly calls?: readonly SaidCall[];
      readonly finish?: FinishReason;
    }
  | { readonly do: 'modelFails'; readonly retryable: boolean }
  /** The call ends with the outcome of its tool, or with the one named here. */
  | { readonly do: 'tool'; readonly call: number; readonly made?: 'fail' | 'timeOut' }
  | {
      readonly do: 'decide';
      readonly call: number;
      readonly action: Decision['action'];
      readonly args?: Json;
      readonly payload?: Json;
      readonly during?: During;
    }
  /** The host's settlement of a call whose outcome is unknown after a crash. */
  | {
      readonly do: 'settle';
      readonly call: number;
      readonly how: 'ran' | 'didNotRun' | 'retry';
      readonly result?: Json;
    };

export type MoveOf<Kind extends Move['do']> = Extract<Move, { do: Kind }>;

/** The window of the model under test: far larger than instructions and tools, small enough that one message can fill it. */
export const WINDOW_CHARACTERS = 400_000;
const WORD = 'word ';

/** A message that takes this share of the window. */
export const filling = (share: number): string => WORD.repeat(Math.round((share * WINDOW_CHARACTERS) / WORD.length));

/** Returns the share of the window that such a message fills. Undefined for any other message. */
export function shareFilled(text: string): number | undefined {
  const share = Number((text.length / WINDOW_CHARACTERS).toFixed(3));
  return text !== '' && text === filling(share) ? share : undefined;
}

/** A final answer that fits no schema of objects, lists or numbers. */
export const UNFIT = 'This is no JSON.';

const ARGS_SHOWN = 60;
const cut = (text: string): string => (text.length > ARGS_SHOWN ? `${text.slice(0, ARGS_SHOWN - 1)}…` : text);
const callText = ({ name, args }: SaidCall): string => `${name}(${cut(JSON.stringify(args) ?? '')})`;

const FINISHES: Readonly<Record<FinishReason, string>> = {
  stop: 'the model answers',
  'tool-calls': 'the model promises calls and makes none',
  length: 'the reply is cut by its length',
  'content-filter': 'the reply is filtered out',
  pause: 'the model pauses',
};
const DECISIONS: Readonly<Record<Decision['action'], string>> = {
  approve: 'is approved',
  deny: 'is denied',
  edit: 'is approved with other arguments',
  answer: 'is answered',
};
const SETTLEMENTS: Readonly<Record<MoveOf<'settle'>['how'], string>> = {
  ran: 'is known to have run',
  didNotRun: 'is known not to have run',
  retry: 'is to run again',
};
const PLAIN: Readonly<Record<Exclude<Move['do'], 'reply' | 'modelFails' | 'tool' | 'decide' | 'settle'>, string>> = {
  send: 'a request comes',
  steer: 'a steer comes',
  followUp: 'a followUp comes',
  cancel: 'it is cancelled',
  resume: 'it is resumed',
  crash: 'the process dies',
  takeBack: 'the message is taken back',
  sumUp: 'earlier messages are summed up',
  deadline: 'the time is up',
};

function replySentence({ text, calls = [], finish }: MoveOf<'reply'>): string {
  const cutShort = finish !== undefined && finish !== 'stop' && finish !== 'tool-calls';
  if (calls.length > 0) {
    const sentence = `the model calls ${calls.map(callText).join(' and ')}`;
    return cutShort ? `${sentence} and ${FINISHES[finish].replace('the model ', '')}` : sentence;
  }
  if (!cutShort && text === '') return 'the model says nothing';
  if (!cutShort && text === UNFIT) return 'the model answers without fitting the schema';
  return FINISHES[finish ?? 'stop'];
}

/** Returns the agent's work that the move interrupts. */
export const duringOf = (move: Move | undefined): During | undefined =>
  move && 'during' in move ? move.during : undefined;

const FULL = 1;

/**
 * The move in words. `toolOf` returns the tool of a call. `several`: several calls of this tool must be distinguished.
 */
export function inWords(move: Move, toolOf: (call: number) => string): string {
  const during = duringOf(move);
  const meanwhile = during === 'storing' ? ' while its end is being stored' : during ? ` during ${during}` : '';
  return `${actInWords(move, toolOf)}${meanwhile}`;
}

function actInWords(move: Move, toolOf: (call: number) => string): string {
  switch (move.do) {
    case 'send':
    case 'steer':
    case 'followUp':
      if (move.fills === undefined) return PLAIN[move.do];
      return `${PLAIN[move.do]} that ${move.fills < FULL ? 'fills' : 'does not fit'} the window`;
    case 'reply':
      return replySentence(move);
    case 'modelFails':
      return move.retryable ? 'the model fails' : 'the model refuses for good';
    case 'tool':
      if (move.made === 'fail') return `${toolOf(move.call)} fails`;
      return move.made === 'timeOut' ? `${toolOf(move.call)} times out` : `${toolOf(move.call)} ends`;
    case 'crash':
      return move.lost === undefined ? PLAIN.crash : `${PLAIN.crash} with the result of ${toolOf(move.lost)}`;
    case 'decide':
      return `${toolOf(move.call)} ${DECISIONS[move.action]}`;
    case 'settle':
      return `${toolOf(move.call)} ${SETTLEMENTS[move.how]}`;
    default:
      return PLAIN[move.do];
  }
}

/** Returns the calls of the script in order. The first is call 1. */
export const callsOf = (script: readonly Move[]): readonly SaidCall[] =>
  script.flatMap((move) => (move.do === 'reply' ? (move.calls ?? []) : []));

/** Names the tool of each call of a script, and numbers calls of the same tool. */
export function toolNames(script: readonly Move[]): (call: number) => string {
  const calls = callsOf(script);
  return (call) => {
    const name = calls[call - 1]?.name;
    if (name === undefined) return `call ${call}`;
    const same = calls.filter((other) => other.name === name);
    return same.length < 2 ? name : `${name} (call ${call})`;
  };
}

/** Returns the script as a sentence, without the request that starts it. */
export function sentenceOf(script: readonly Move[], ends: string): string {
  const toolOf = toolNames(script);
  const [first] = script;
  const isPlain = first?.do === 'send' && first.fills === undefined;
  const moves = isPlain && script.length > 1 ? script.slice(1) : script;
  return `${moves.map((move) => inWords(move, toolOf)).join(', ')}: ${ends}`;
}
