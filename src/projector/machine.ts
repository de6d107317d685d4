/**
 * When a request begins, what belongs to it and when it ends (request-cycle-model, Deterministic Construction). Rule: a
 * pure table from state and signal to one move, which knows neither entries nor views. The three stop reasons are one
 * signal, because they are one boundary class.
 */
import type { Reading } from './readEntry.ts';

export type Phase = 'idle' | 'active';

export type Signal =
  | 'message-direct'
  | 'message-steer'
  | 'message-followUp'
  /** A user message that leaves its kind to the receiver. */
  | 'message-open'
  | 'work'
  | 'boundary'
  | 'suspension'
  | 'resumption';

export type Move =
  | 'open-direct'
  | 'open-followUp'
  | 'steer'
  | 'queue'
  | 'append'
  | 'close'
  /** The cycle stays open and waits: a suspension is no boundary. */
  | 'wait'
  /** The last cycle goes on. */
  | 'reopen'
  | 'refuse';

export interface Transition {
  readonly move: Move;
  readonly to: Phase;
  /** The diagnostic's code where the signal did not fit. */
  readonly odd?: 'kind-overridden' | 'orphan' | 'stop_while_idle';
}

type Table = Readonly<Record<Phase, Readonly<Record<Signal, Transition>>>>;

const IDLE: Table['idle'] = {
  'message-direct': { move: 'open-direct', to: 'active' },
  'message-open': { move: 'open-direct', to: 'active' },
  'message-followUp': { move: 'open-followUp', to: 'active' },
  'message-steer': { move: 'open-direct', to: 'active', odd: 'kind-overridden' },
  work: { move: 'refuse', to: 'idle', odd: 'orphan' },
  boundary: { move: 'refuse', to: 'idle', odd: 'stop_while_idle' },
  suspension: { move: 'refuse', to: 'idle', odd: 'orphan' },
  resumption: { move: 'reopen', to: 'active' },
};

const active = (unnamed: 'steer' | 'queue'): Table['active'] => ({
  'message-direct': { move: unnamed, to: 'active', odd: 'kind-overridden' },
  'message-open': { move: unnamed, to: 'active' },
  'message-followUp': { move: 'queue', to: 'active' },
  'message-steer': { move: 'steer', to: 'active' },
  work: { move: 'append', to: 'active' },
  boundary: { move: 'close', to: 'idle' },
  suspension: { move: 'wait', to: 'active' },
  resumption: { move: 'reopen', to: 'active' },
});

/** By what a message that is neither steer nor followUp becomes while a cycle is open. */
const TABLES: Readonly<Record<'steer' | 'followUp', Table>> = {
  steer: { idle: IDLE, active: active('steer') },
  followUp: { idle: IDLE, active: active('queue') },
};

export const next = (phase: Phase, signal: Signal, whileActive: 'steer' | 'followUp'): Transition =>
  TABLES[whileActive][phase][signal];

const MESSAGES = {
  direct: 'message-direct',
  steer: 'message-steer',
  followUp: 'message-followUp',
} as const satisfies Record<string, Signal>;

/** Undefined where the entry moves nothing. */
export function signalOf(reading: Reading): Signal | undefined {
  switch (reading.type) {
    case 'user-message':
      return reading.kind === undefined ? 'message-open' : MESSAGES[reading.kind];
    case 'agent-output':
    case 'model-reply':
      return 'work';
    case 'run-stop':
      return 'boundary';
    case 'run-suspended':
      return 'suspension';
    case 'run-resumed':
      return 'resumption';
    default:
      return undefined;
  }
}
