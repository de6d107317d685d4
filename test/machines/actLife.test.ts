/**
 * The life of an act of the host: every order of events for one act and for two, from each status of the conversation. Clauses over each
 * event define the correct result. The fates of abandoned acts are a table, written by hand.
 */
import { describe, expect, it } from 'vitest';
import {
  ACT_LIFE,
  type Act,
  type ActEvent,
  type ActTask,
  defaultPolicies,
  fatesOf,
  type GivenUpBy,
  nextActs,
  overtakes,
  type PendingAct,
  placeOfRun,
  runOf,
  type Standing,
} from '../../machines/internal.ts';

const call = { callId: 's', name: 'ask', gated: false, readOnly: false, fingerprint: '' };
const standingAt = (status: Standing['status']): Standing => ({
  status,
  undecided: [{ call, suspension: 1 }],
  queued: 0,
  policies: { ...defaultPolicies, whileSuspended: 'denyAndRun' },
});
const decision = { type: 'decision.proposed', decision: { callId: 's' } };
const message = (kind: 'direct' | 'steer' | 'followUp'): Act => ({ type: 'message.sent', kind });
const resume: Act = { type: 'resume.requested' };
const promotion: Act = { type: 'promotion.requested' };
const cancel: Act = { type: 'cancel.requested' };

interface Call {
  act: PendingAct['act'];
  hasImages?: true;
}
const CALLS: readonly Call[] = [
  ...(['direct', 'steer', 'followUp'] as const).flatMap((kind) => [
    { act: message(kind) },
    { act: message(kind), hasImages: true as const },
  ]),
  { act: { ...message('direct'), withdrawn: true } },
  { act: { ...message('direct'), withdrawn: true }, hasImages: true },
  { act: resume },
  { act: promotion },
  { act: cancel },
  { act: decision },
  { act: { type: 'message.returned' } },
];

/** The progress of the acts of a script so far. */
interface Moment {
  readonly acts: readonly PendingAct[];
  readonly called: number;
  /** Ids of acts that were sent, and in the order of their delivery those that were not delivered. */
  readonly sent: readonly string[];
  readonly journal: readonly string[];
  readonly taken: readonly string[];
  readonly ended: readonly string[];
  readonly isClosed: boolean;
}
const START: Moment = { acts: [], called: 0, sent: [], journal: [], taken: [], ended: [], isClosed: false };

const idOf = (index: number): string => `act/${index}`;
const runIdOf = (index: number): string => runOf(`m${index}`);
const isEnd = (task: ActTask): boolean => task.do === 'return' || task.do === 'answer' || task.do === 'refuse';

/** The possible next events. Images may be stored or lost after their act was abandoned. */
function eventsAfter(script: readonly Call[], moment: Moment, standing: Standing): ActEvent[] {
  const { called, isClosed, journal, taken } = moment;
  const next = isClosed ? undefined : script[called];
  const ids = script.slice(0, called).map((_, index) => idOf(index));
  const by: readonly GivenUpBy[] = ['cancel', 'close', ...ids.map((_, index) => ({ runId: runIdOf(index) }))];
  const [first] = journal;
  return [
    ...(next
      ? [
          {
            type: 'called' as const,
            id: idOf(called),
            act: next.act,
            runId: next.act === cancel ? undefined : runIdOf(called),
            hasImages: next.hasImages === true,
          },
        ]
      : []),
    ...ids.flatMap((id, index): ActEvent[] =>
      script[index]?.hasImages
        ? [
            { type: 'imagesStored', id },
            { type: 'imagesLost', id },
          ]
        : [],
    ),
    { type: 'send' },
    ...by.map((each): ActEvent => ({ type: 'giveUp', by: each, standing })),
    ...(first === undefined ? [] : [{ type: 'deliver' as const, id: first }]),
    ...taken.flatMap((id): ActEvent[] => [
      { type: 'durable', id },
      { type: 'lost', id },
    ]),
    { type: 'break' },
    { type: 'close' },
  ];
}

/** The faults in the tasks of one event. */
function faultsOf(script: readonly Call[], before: Moment, event: ActEvent, tasks: readonly ActTask[]): string[] {
  const faults: string[] = [];
  const indexOf = (id: string): number => Number(id.slice('act/'.length));
  const overtaking = (id: string): boolean => overtakes(script[indexOf(id)]?.act ?? { type: '' });
  for (const task of tasks) {
    const { id } = task;
    const wasSent = before.sent.includes(id);
    if (before.ended.includes(id)) faults.push(`${task.do} after the end of ${id}`);
    if (task.do === 'send') {
      const earlier = before.acts.filter(
        (act) => indexOf(act.id) < indexOf(id) && !before.sent.includes(act.id) && !overtaking(act.id),
      );
      if (wasSent) faults.push(`${id} is sent twice`);
      if (!overtaking(id) && earlier.length > 0) faults.push(`${id} is sent before ${earlier[0]?.id}`);
    }
    if (task.do === 'withdraw' && (!wasSent || before.taken.includes(id))) faults.push(`${id} is withdrawn too late`);
    if (task.do === 'return' && before.taken.includes(id)) faults.push(`${id} is taken, and returned`);
    if (task.do === 'answer' && !before.taken.includes(id)) faults.push(`${id} is answered before it is taken`);
  }
  if (event.type === 'close' && tasks.length !== before.acts.length) faults.push('an act survives the close');
  if (event.type === 'break' && tasks.length !== before.taken.length) faults.push('a broken chart answers an act');
  if (tasks.filter(isEnd).length !== new Set(tasks.filter(isEnd).map(({ id }) => id)).size) faults.push('two ends');
  return faults;
}

function after(moment: Moment, event: ActEvent): { moment: Moment; tasks: readonly ActTask[] } {
  const { acts, tasks } = nextActs(moment.acts, event);
  const sent = tasks.filter((task) => task.do === 'send').map(({ id }) => id);
  const ended = [...moment.ended, ...tasks.filter(isEnd).map(({ id }) => id)];
  const isUrgent = event.type === 'called' && overtakes(event.act);
  const journal = isUrgent ? [...sent, ...moment.journal] : [...moment.journal, ...sent];
  return {
    moment: {
      acts,
      called: moment.called + (event.type === 'called' ? 1 : 0),
      sent: [...moment.sent, ...sent],
      journal: event.type === 'close' ? [] : event.type === 'deliver' ? journal.slice(1) : journal,
      taken: acts.filter(({ stage }) => stage === 'taken').map(({ id }) => id),
      ended,
      isClosed: moment.isClosed || event.type === 'close',
    },
    tasks,
  };
}

/** Images are stored, and every act is sent, delivered and stored. */
function finished(start: Moment): Moment {
  let moment = start;
  for (const { id } of moment.acts) moment = after(moment, { type: 'imagesStored', id }).moment;
  for (let left = moment.acts.length; left > 0; left -= 1) moment = after(moment, { type: 'send' }).moment;
  for (const id of moment.journal) moment = after(moment, { type: 'deliver', id }).moment;
  for (const id of moment.taken) moment = after(moment, { type: 'durable', id }).moment;
  return moment;
}

const steps = new Set<string>();
/** Follows each event from each moment that the script can reach. Returns the faults, and the number of followed events. */
function explore(script: readonly Call[], standing: Standing): { faults: string[]; events: number } {
  const faults: string[] = [];
  const seen = new Set<string>();
  const open: Moment[] = [START];
  let events = 0;
  for (let moment = open.pop(); moment; moment = open.pop()) {
    const key = JSON.stringify(moment);
    if (seen.has(key)) continue;
    seen.add(key);
    if (finished(moment).acts.length > 0) faults.push(`an act has no end after ${key}`);
    for (const event of eventsAfter(script, moment, standing)) {
      events += 1;
      const next = after(moment, event);
      faults.push(...faultsOf(script, moment, event, next.tasks).map((fault) => `${fault}: ${event.type} at ${key}`));
      for (const { id, stage } of moment.acts) {
        const now = next.moment.acts.find((act) => act.id === id)?.stage ?? 'over';
        if (now !== stage) steps.add(`${stage} ${now}`);
      }
      open.push(next.moment);
    }
  }
  return { faults, events };
}

describe('the life of acts, in every order of events', () => {
  const statuses = ['idle', 'active', 'waiting', 'cancelling'] as const;

  it.each(statuses)(
    'one act and two acts of a conversation that is %s: each has one end, in the order of the calls',
    (status) => {
      const faults: string[] = [];
      let events = 0;
      const scripts = [...CALLS.map((call) => [call]), ...CALLS.flatMap((a) => CALLS.map((b) => [a, b]))];
      for (const script of scripts) {
        const explored = explore(script, standingAt(status));
        events += explored.events;
        faults.push(...explored.faults);
        if (faults.length > 5) break;
      }
      expect(faults).toEqual([]);
      expect(events).toBeGreaterThan(10_000);
    },
  );

  it('every step of the table is taken, and no other', () => {
    const drawn = Object.entries(ACT_LIFE).flatMap(([stage, life]) =>
      stage === 'called'
        ? []
        : Object.values(life).map((to) => `${stage} ${to === 'answered' || to === 'refused' ? 'over' : to}`),
    );
    expect([...steps].sort()).toEqual([...new Set(drawn)].sort());
  });
});

describe('the fate of acts that the chart has not taken', () => {
  const standing = standingAt('idle');
  const [direct, steer, followUp] = [message('direct'), message('steer'), message('followUp')];
  type Pending = [act: Act, stage?: PendingAct['stage']];
  const pendingOf = (acts: readonly Pending[]): PendingAct[] =>
    acts.map(([act, stage = 'sent'], index) => ({ id: idOf(index), act, runId: runIdOf(index), stage }));

  it.each<[name: string, acts: Pending[], by: 'cancel' | 'close' | number, fates: string]>([
    ['a cancel: the run that would start first is logged as cancelled', [[direct]], 'cancel', 'withdraw'],
    ['a cancel: so is a resumption', [[resume]], 'cancel', 'withdraw'],
    ['a cancel: the messages after it stay', [[direct], [steer], [followUp]], 'cancel', 'withdraw - -'],
    ['a cancel: a promotion is abandoned, and its message stays in the queue', [[promotion]], 'cancel', 'return'],
    ['a cancel: a message with images is returned', [[direct, 'storing']], 'cancel', 'return'],
    ['a cancel: a steer with images is returned', [[direct], [steer, 'storing']], 'cancel', 'withdraw return'],
    ['a cancel: a followUp with images stays', [[direct], [followUp, 'storing']], 'cancel', 'withdraw -'],
    ['a cancel: a followUp with images that starts first does not', [[followUp, 'storing']], 'cancel', 'return'],
    [
      'a cancel: an act after such images stays',
      [
        [steer, 'storing'],
        [followUp, 'held'],
      ],
      'cancel',
      'return -',
    ],
    ['a second cancel changes nothing', [[direct, 'withdrawn'], [followUp]], 'cancel', 'withdraw -'],
    ['a close: no run starts, and nothing is logged', [[direct], [followUp]], 'close', 'return -'],
    ['a close: every message with images is returned', [[direct], [followUp, 'storing']], 'close', 'return return'],
    ['a close: a run that was to be cancelled does not start', [[direct, 'withdrawn']], 'close', 'return'],
    ['one act: its run is logged as cancelled', [[direct], [steer]], 0, 'withdraw -'],
    ['one act: if it starts no run, it is returned', [[direct], [steer]], 1, '- return'],
    ['one act: an act that is not on its way is not judged', [[direct]], 1, '-'],
    ['one act: a message that waits for the images of others is returned', [[direct, 'held']], 0, 'return'],
    ['an act that the chart has taken is not judged', [[direct, 'taken'], [resume]], 'cancel', '- withdraw'],
  ])('%s', (_, acts, by, fates) => {
    const actual = fatesOf(standing, pendingOf(acts), typeof by === 'string' ? by : { runId: runIdOf(by) });
    expect(actual.map((fate) => fate ?? '-').join(' ')).toBe(fates);
  });

  it('an active run is not the one that would start', () => {
    const acts = pendingOf([[steer], [followUp]]);
    expect(fatesOf(standingAt('active'), acts, 'cancel')).toEqual([undefined, undefined]);
    expect(fatesOf(standingAt('active'), acts, 'close')).toEqual([undefined, undefined]);
  });

  it('the place of a run decides how it is cancelled', () => {
    const queued = { messageId: 'm0', kind: 'followUp' as const, content: [] };
    const chart = { runId: runIdOf(9), queue: [queued] };
    expect(placeOfRun(chart, pendingOf([[direct], [steer]]), runIdOf(1))).toBe('onItsWay');
    expect(placeOfRun(chart, pendingOf([[direct, 'taken']]), runIdOf(0))).toBe('queued');
    expect(placeOfRun(chart, pendingOf([[promotion]]), runIdOf(0))).toBe('queued');
    expect(placeOfRun(chart, [], runIdOf(9))).toBe('active');
    expect(placeOfRun(chart, [], runIdOf(1))).toBe('none');
  });
});
