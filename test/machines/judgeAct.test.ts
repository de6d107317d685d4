/**
 * The result of each act of a host, in each state of a conversation. The table is written by hand. Orders of up to
 * three acts are compared with CONVERSATION itself, which takes them one after the other.
 */
import { describe, expect, it } from 'vitest';
import {
  type Act,
  acceptMessage,
  type ChartPolicies,
  conversationChart,
  defaultPolicies,
  freshCounters,
  judgeAct,
  noOpenCalls,
  type Standing,
  standingAfter,
  standingOf,
} from '../../machines/internal.ts';
import { compiled } from '../../src/runtime/interpreter/chartActor.ts';
import type { RootChart, World } from '../../src/runtime/interpreter/interpreter.ts';

type Policies = Pick<ChartPolicies, 'whileActive' | 'whileSuspended'>;
const WHILE_ACTIVE = ['reject', 'steer', 'followUp'] as const;
const WHILE_SUSPENDED = ['reject', 'followUp', 'denyAndRun'] as const;
const POLICIES: readonly Policies[] = WHILE_ACTIVE.flatMap((whileActive) =>
  WHILE_SUSPENDED.map((whileSuspended) => ({ whileActive, whileSuspended })),
);

const call = { callId: 's', name: 'ask', gated: false, readOnly: false, fingerprint: '' };
const suspended = { ...noOpenCalls, suspended: [{ call, suspension: 1 }] };
const held = { callId: 's', suspension: 1, decision: { callId: 's', action: 'approve' as const } };
const decided = { ...suspended, decisions: [held] };

type Event = { type: string; [field: string]: unknown };
const message = (kind: 'direct' | 'steer' | 'followUp'): Act & Event => ({ type: 'message.sent', kind });
const cancel: Act & Event = { type: 'cancel.requested' };
const lost = { type: 'append.failed', error: { code: 'store', message: '' }, lost: [] };

/** Each state with the calls that wait and the events that lead to it. */
const STATES: { readonly [state: string]: { open: typeof suspended | undefined; events: readonly Event[] } } = {
  idle: { open: undefined, events: [] },
  error: { open: undefined, events: [lost] },
  active: { open: undefined, events: [message('direct')] },
  cancelling: { open: undefined, events: [message('direct'), cancel] },
  undecided: { open: suspended, events: [] },
  decided: { open: decided, events: [] },
  stopping: { open: suspended, events: [cancel] },
  late: { open: suspended, events: [cancel, lost] },
  superseding: { open: suspended, events: [{ ...message('direct'), whileSuspended: 'denyAndRun' }] },
};

/** A chart without a world. Each message and resumption has an id of its own. */
class Chart {
  readonly #root: RootChart;
  #acts = 0;
  /** The result of the last act. */
  answer: string | undefined;

  constructor(state: string, policies: Policies) {
    const { open = noOpenCalls, events } = STATES[state] ?? { events: [] };
    const settings = { conversationId: 'c', policies: { ...defaultPolicies, ...policies }, phases: {}, models: ['m'] };
    const waiting = open !== noOpenCalls;
    const input = { settings, open, counters: freshCounters, queue: [], runId: 'run_0', waiting };
    const world: World = {
      ask: (_, request) => {
        if (request.kind === 'answer') this.answer = request.outcome;
      },
      drop() {},
      log() {},
    };
    const onError = (error: unknown): never => {
      throw error;
    };
    this.#root = compiled({ machine: conversationChart, input, world, onError });
    this.#root.start();
    for (const event of events) this.take(event);
  }

  take(event: Event): void {
    this.#acts += 1;
    const id = `n${this.#acts}`;
    this.answer = undefined;
    this.#root.send({ ...event, actId: id, messageId: id, runId: `run_${id}`, content: [] } as Event);
  }

  get standing(): Standing {
    return standingOf(this.#root.getSnapshot());
  }
}

/** Returns a message of `send()` as the policies accept it. Undefined if they refuse it. */
function accepted(standing: Standing, kind: 'send' | 'steer' | 'followUp'): (Act & Event) | undefined {
  const answer = acceptMessage(standing, kind === 'send' ? {} : { kind });
  return 'refused' in answer ? undefined : message(answer.kind);
}

/** Returns the result of the act, or the reason for the refusal of a `send`. */
function outcomeOf(state: string, act: string, policies: Policies): string {
  const { standing } = new Chart(state, policies);
  if (act === 'resume') return judgeAct(standing, { type: 'resume.requested' });
  if (act === 'cancel') return judgeAct(standing, { type: 'cancel.requested' });
  const answer = acceptMessage(standing, act === 'send' ? {} : { kind: act as 'steer' | 'followUp' });
  return 'refused' in answer ? answer.refused : judgeAct(standing, message(answer.kind));
}

/** Three outcomes: of the policies `reject / steer / followUp`, or `reject / followUp / denyAndRun` where a call waits. */
const TABLE: { readonly [state: string]: { readonly [act: string]: string } } = {
  idle: { send: 'started', steer: 'started', followUp: 'started', resume: 'continued', cancel: 'nothing' },
  error: { send: 'started', steer: 'started', followUp: 'started', resume: 'continued', cancel: 'nothing' },
  active: {
    send: 'busy / steered / queued',
    steer: 'steered',
    followUp: 'queued',
    resume: 'joined',
    cancel: 'cancelled',
  },
  cancelling: {
    send: 'cancelling / queued / queued',
    steer: 'queued',
    followUp: 'queued',
    resume: 'nothing',
    cancel: 'joined',
  },
  undecided: {
    send: 'suspended / queued / superseding',
    steer: 'queued',
    followUp: 'queued',
    resume: 'continued',
    cancel: 'cancelled',
  },
  decided: {
    send: 'suspended / resumed / superseding',
    steer: 'resumed',
    followUp: 'resumed',
    resume: 'continued',
    cancel: 'cancelled',
  },
  stopping: {
    send: 'cancelling / queued / queued',
    steer: 'queued',
    followUp: 'queued',
    resume: 'nothing',
    cancel: 'joined',
  },
  late: { send: 'started', steer: 'started', followUp: 'started', resume: 'continued', cancel: 'nothing' },
  superseding: {
    send: 'busy / steered / queued',
    steer: 'steered',
    followUp: 'queued',
    resume: 'joined',
    cancel: 'cancelled',
  },
};

describe('S001: the outcome of an act of the host', () => {
  it.each(Object.keys(TABLE))('in the state %s is that of the table, under each policy', (state) => {
    for (const [act, expected] of Object.entries(TABLE[state] ?? {})) {
      const each = expected.split(' / ');
      for (const policies of POLICIES) {
        const isWaiting = state === 'undecided' || state === 'decided';
        const at = isWaiting
          ? WHILE_SUSPENDED.indexOf(policies.whileSuspended)
          : WHILE_ACTIVE.indexOf(policies.whileActive);
        expect(`${act}: ${outcomeOf(state, act, policies)}`).toBe(`${act}: ${each[at] ?? each[0]}`);
      }
    }
  });

  it('a message that would wait is refused where the queue is full', () => {
    const { standing } = new Chart('active', { whileActive: 'steer', whileSuspended: 'followUp' });
    const full = { ...standing, queued: standing.policies.limits.queue };
    for (const asked of [{}, { kind: 'steer' }, { kind: 'followUp' }] as const)
      expect(acceptMessage(full, asked)).toEqual({ refused: 'full' });
    expect(acceptMessage({ ...full, status: 'idle' }, { kind: 'steer' })).toEqual({ kind: 'steer' });
  });
});

const ACTS = ['send', 'steer', 'followUp', 'resume', 'cancel'] as const;
const ORDERS = ACTS.flatMap((a) => [[a], ...ACTS.flatMap((b) => [[a, b], ...ACTS.map((c) => [a, b, c])])]);

it.each(Object.keys(STATES))('each order of up to three acts from %s is judged as the chart takes it', (state) => {
  // Only a conversation whose call waits can reach states in which the other policy matters.
  const policiesOf = STATES[state]?.open
    ? POLICIES
    : POLICIES.filter(({ whileSuspended }) => whileSuspended === 'reject');
  for (const policies of policiesOf) {
    for (const order of ORDERS) {
      const chart = new Chart(state, policies);
      let judged = chart.standing;
      for (const act of order) {
        const event =
          act === 'cancel'
            ? cancel
            : act === 'resume'
              ? ({ type: 'resume.requested' } as const)
              : accepted(judged, act);
        if (!event) continue;
        const outcome = judgeAct(judged, event);
        // After a message that resumes, the chart judges the next one as in an active run.
        const isLater = judged.resuming === true;
        judged = standingAfter(judged, outcome);
        chart.take(event);
        if (!isLater && chart.answer !== outcome)
          expect([order, policies, event.type, chart.answer]).toEqual([order, policies, event.type, outcome]);
      }
      const { status, queued } = chart.standing;
      // The run of a message that resumes the cycle counts from the moment at which the chart takes the message.
      const expected = judged.status === 'waiting' && judged.resuming ? 'active' : judged.status;
      if (expected !== status || judged.queued !== queued)
        expect([order, policies, expected, judged.queued]).toEqual([order, policies, status, queued]);
    }
  }
});
