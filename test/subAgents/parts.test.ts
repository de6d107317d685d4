/** The parts of sub-agents, one by one: slots, tasks, ids, records, payloads and reports. */
import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import {
  emptyLogState,
  type Json,
  type LogEntry,
  type LogState,
  type PendingCall,
  type UsageCost,
  zeroUsage,
} from '../../machines/internal.ts';
import { bytesOf } from '../../src/json.ts';
import { childIdOf, TASKS_MOST, taskList, tasksOf } from '../../src/subAgents/spawnTasks.ts';
import type { SubAgent } from '../../src/subAgents/subAgent.ts';
import { Semaphore, SubAgentGroup } from '../../src/subAgents/subAgentGroup.ts';
import { type Outcome, outcomeInLog, overBudget, reportOf } from '../../src/subAgents/subAgentOutcome.ts';
import {
  CallIds,
  EndedCalls,
  SubAgentRecords,
  waitingPayload,
  waitingPlace,
} from '../../src/subAgents/subAgentRecords.ts';
import { answerOf } from '../../src/tools/tool.ts';
import { flush } from '../support/virtualClock.ts';

const { signal } = new AbortController();

describe('slots', () => {
  it('their number is constant, however often one is released, and the longest waiting caller gets the next', async () => {
    const places = new Semaphore(1.9);
    const first = await places.acquire(signal);
    const order: string[] = [];
    const wait = async (name: string) => {
      const giveBack = await places.acquire(signal);
      order.push(name);
      return giveBack;
    };
    const waiting = [wait('a'), wait('b'), wait('c')] as const;
    first();
    first();
    await flush();
    expect(order).toEqual(['a']);
    (await waiting[0])();
    (await waiting[1])();
    await flush();
    expect(order).toEqual(['a', 'b', 'c']);
  });

  it('they do not go to callers that have left, and no listener remains', async () => {
    const places = new Semaphore(1);
    const abort = new AbortController();
    const giveBack = await places.acquire(abort.signal);
    const leaves = places.acquire(abort.signal);
    const stays = new AbortController();
    const next = places.acquire(stays.signal);
    abort.abort(new Error('left'));
    await expect(leaves).rejects.toThrow('left');
    await expect(places.acquire(abort.signal)).rejects.toThrow('left');
    giveBack();
    (await next)();
    expect([abort.signal, stays.signal].map((each) => getEventListeners(each, 'abort').length)).toEqual([0, 0]);
    (await places.acquire(signal))();
  });
});

describe('the sub-agents of a call', () => {
  interface Child {
    canContinue?: boolean;
    ending?: Outcome;
    endedBefore?: number;
    work?(): Promise<void>;
    stop?(): Promise<void>;
  }
  /** Children that end after their work, and the calls on them. */
  function group(members: { [id: string]: Child }, resultBytes = 10_000, concurrency = 2) {
    const acts: string[] = [];
    const children = Object.entries(members).map(([id, each]) => {
      const child = {
        ...{ task: { id, task: `do ${id}` }, ending: each.ending, endedBefore: each.endedBefore },
        ...{ pending: [], unsettled: [], upTo: 3, canContinue: each.canContinue ?? each.ending === undefined },
        async work() {
          acts.push(`work ${id}`);
          await each.work?.();
          child.canContinue = false;
          child.ending = { outcome: 'succeeded', text: id };
        },
        cancel: () => void acts.push(`cancel ${id}`),
        stop: each.stop ?? (async () => void acts.push(`stop ${id}`)),
        close: async () => void acts.push(`close ${id}`),
      };
      return child;
    });
    const options = { callId: 'c1', concurrency, semaphore: new Semaphore(concurrency), resultBytes };
    const resumeParent = async () => void acts.push('resume');
    const made = new SubAgentGroup({ ...options, children: children as unknown as SubAgent[], resumeParent });
    return { made, acts, children: children as unknown as SubAgent[] };
  }
  const run = (made: SubAgentGroup, on = signal) => made.run({ signal: on, progress: () => undefined });
  const ids = async (made: SubAgentGroup) => {
    const answer = answerOf(await run(made));
    const content = answer?.status === 'success' ? String(answer.content) : '[]';
    return (JSON.parse(content) as { id: string }[]).map(({ id }) => id);
  };

  it('they are reported in the order of their ends, earlier ends first', async () => {
    const ended = (endedBefore: number): Child => ({ endedBefore, ending: { outcome: 'failed', text: '' } });
    const { made } = group({ a: { work: flush }, b: ended(9), c: {}, d: ended(4) });
    expect(await ids(made)).toEqual(['d', 'b', 'c', 'a']);
  });

  it('they work again after a failed run, and each is cancelled once, the last started first', async () => {
    let fails = true;
    const work = async (): Promise<void> => {
      if (fails) throw new Error('log cannot be written');
    };
    const { made, acts } = group({ a: { work }, b: {}, c: {} });
    await expect(run(made)).rejects.toThrow('cannot be written');
    fails = false;
    expect(await ids(made)).toEqual(['b', 'c', 'a']);
    acts.length = 0;
    made.cancel();
    expect(acts).toEqual(['cancel c', 'cancel b', 'cancel a']);
  });

  it('they listen for the cancel of their call while it runs', async () => {
    const abort = new AbortController();
    const { made } = group({ a: {} });
    await run(made, abort.signal);
    expect(getEventListeners(abort.signal, 'abort')).toHaveLength(0);
  });

  it('they resume their parent if one of them can continue, and not twice for one decision', async () => {
    const able = group({ a: {} });
    await able.made.continueAfter(able.children[0] as SubAgent, { callId: 'x' });
    const over = group({ a: { canContinue: false } });
    await over.made.continueAfter(over.children[0] as SubAgent, { callId: 'x' });
    expect([able.acts, over.acts]).toEqual([['resume'], []]);
  });

  it('they are stopped after the working ones have settled', async () => {
    let rest = (): void => undefined;
    const work = () => new Promise<void>((resolve) => (rest = resolve));
    const { made, acts } = group({ a: { work }, b: {} }, 10_000, 1);
    const working = run(made).catch(() => undefined);
    await flush();
    const down = made.shutDown();
    await flush();
    expect(acts).toEqual(['work a', 'cancel a', 'cancel b']);
    rest();
    await Promise.all([down, working]);
    expect(acts.slice(3)).toEqual(['stop a', 'stop b']);
  });

  it('all are stopped or closed, even if a stop cannot be recorded, and the first failure is reported', async () => {
    const stop = (id: string) => async (): Promise<void> => {
      throw new Error(`${id} not recorded`);
    };
    const { made, acts } = group({ a: { stop: stop('a') }, b: {}, c: { stop: stop('c') } });
    await expect(made.shutDown()).rejects.toThrow('a not recorded');
    expect(acts.slice(3)).toEqual(['close a', 'stop b', 'close c']);
  });

  it('they wait with a payload of at most half a result', async () => {
    const { made } = group({ a: { canContinue: false } }, 200);
    const [child] = made.children as unknown as { pending: unknown[] }[];
    child?.pending.push({ callId: 'x', name: 'act', args: 'y'.repeat(90), reason: 'r', suspension: 1, path: ['x'] });
    const answer = answerOf(await run(made));
    const payload = answer?.status === 'pending' ? answer.suspend.payload : undefined;
    expect(bytesOf(JSON.stringify(payload))).toBeLessThanOrEqual(100);
  });

  it.each([
    [['a', 'b'], true],
    [['a'], false],
    [['a', 'b', 'c'], false],
    [['b', 'a'], false],
    [['a', 'b!'], false],
    [[], false],
  ])('for the tasks %j they are: %s', (names, expected) => {
    const tasks = names.map((name) => ({ id: name.replace('!', ''), task: `do ${name}` }));
    expect(group({ a: {}, b: {} }).made.worksOn(tasks)).toBe(expected);
  });
});

describe('tasks', () => {
  const validate = async (input: unknown) => {
    const read = await taskList['~standard'].validate(input);
    return read.issues ? read.issues.map(({ path = [], message }) => `${path.join('.')}: ${message}`) : read.value;
  };
  const task = (id: unknown, words: unknown = 'x') => ({ id, task: words });
  const many = (count: number) => Array.from({ length: count }, (_, at) => task(`${at}`));

  it.each([
    [[task('a')]],
    [[task('a'), task('b')]],
    [[task('x'.repeat(64))]],
    [[task(' ', ' x ')]],
    [many(TASKS_MOST)],
  ])('%j are valid, for a call and in a log', async (tasks) => {
    expect(await validate({ tasks })).toEqual({ tasks });
    expect(tasksOf({ tasks } as never)).toEqual(tasks);
  });

  it.each<[unknown, string]>([
    [undefined, 'tasks: expected a list'],
    [null, 'tasks: expected a list'],
    [[], 'tasks: expected a list'],
    [{}, 'tasks: expected a list'],
    [Object.create({ tasks: [task('a')] }), 'tasks: expected a list'],
    [{ tasks: {} }, 'tasks: expected a list'],
    [{ tasks: [] }, 'tasks: expected at least one'],
    [{ tasks: many(TASKS_MOST + 1) }, `tasks: at most ${TASKS_MOST} tasks a call, got ${TASKS_MOST + 1}`],
    [{ tasks: [task('')] }, 'tasks.0.id: expected a text of 1 to 64'],
    [{ tasks: [task('x'.repeat(65))] }, 'tasks.0.id: expected a text of 1 to 64'],
    [{ tasks: [task(1)] }, 'tasks.0.id: expected a text of 1 to 64'],
    [{ tasks: [task('a'), task('a')] }, 'tasks.1.id: two tasks have the id "a"'],
    [{ tasks: [task('a', ' \n')] }, 'tasks.0.task: expected a text'],
    [{ tasks: [task('a', 1)] }, 'tasks.0.task: expected a text'],
    [{ tasks: [null] }, 'tasks.0.id: expected a text'],
    [{ tasks: [Object.create(task('a'))] }, 'tasks.0.id: expected a text'],
  ])('%o are invalid', async (input, why) => {
    expect(await validate(input)).toEqual(expect.arrayContaining([expect.stringContaining(why)]));
    expect(tasksOf(input as never)).toEqual([]);
  });

  it('tasks of two calls, conversations or names have separate conversations, whatever their ids are', () => {
    const places: readonly [string, string, string][] = [
      ['a', 'b-c', 'd'],
      ['a-b', 'c', 'd'],
      ['a', 'b', 'c-d'],
      ['a,b', 'c', 'd'],
      ['a', 'b,c', 'd'],
      ['a', 'b","c', 'd'],
      ['', 'a', 'b'],
    ];
    expect(new Set(places.map((place) => childIdOf(...place))).size).toBe(places.length);
    expect(childIdOf('a', 'b', 'c')).toBe(childIdOf('a', 'b', 'c'));
  });
});

describe('the records of sub-agents', () => {
  const change = (seq: number, child: string, phase: string) =>
    ({ seq, type: 'sub-agent', callId: 'c1', child, phase }) as LogEntry;

  it('they contain the first end of each, and the calls with unfinished ones', () => {
    const records = new SubAgentRecords();
    for (const entry of [
      change(1, 'x', 'started'),
      change(2, 'y', 'started'),
      change(5, 'x', 'ended'),
      change(8, 'x', 'ended'),
    ])
      records.apply(entry);
    expect(records.recordOf('c1', 'x')).toEqual({ ended: 5, upTo: 0 });
    expect([...records.calls()]).toEqual([{ callId: 'c1', unended: true }]);
    records.apply(change(9, 'y', 'ended'));
    expect([...records.calls()]).toEqual([{ callId: 'c1', unended: false }]);
    expect([records.recordOf('c2', 'x'), records.recordOf('c1', 'z')]).toEqual([undefined, undefined]);
  });

  const pending = (callId: string, args: string): PendingCall => ({
    ...{ callId, name: 'act', args, reason: 'permission', suspension: 2, path: ['c1', callId] },
  });
  const waiting = (args: string) => [
    { task: { id: 'a' }, pending: [pending('x', args)], upTo: 4 },
    { task: { id: 'b' }, pending: [], upTo: 7 },
  ];

  it('of the waiting ones they contain as much as fits: complete calls, then their names, then their ids', () => {
    const { path: _, ...whole } = pending('x', 'é'.repeat(100));
    const expected = [[whole], [{ callId: 'x', name: 'act', suspension: 2 }], undefined].map((shown) => ({
      waiting: [
        { id: 'a', calls: ['x'], ...(shown && { pending: shown }), upTo: 4 },
        { id: 'b', calls: [], upTo: 7 },
      ],
    }));
    const [first = 0, second = 0] = expected.map((payload) => bytesOf(JSON.stringify(payload)));
    const payloadOf = (most: number) => waitingPayload(waiting('é'.repeat(100)), most);
    expect([first, first - 1, second, second - 1, 0].map(payloadOf)).toEqual([
      ...[expected[0], expected[1], expected[1], expected[2], expected[2]],
    ]);
  });

  it.each([
    [waitingPayload(waiting(''), 1_000), 4, 7],
    [{ waiting: [{ id: 'b', upTo: 7 }] }, undefined, 7],
    [{ waiting: [{ id: 'a', upTo: '4' }, { upTo: 1 }, null, 'a'] }, undefined, undefined],
    [{ waiting: { id: 'a', upTo: 4 } }, undefined, undefined],
    [[{ id: 'a', upTo: 4 }], undefined, undefined],
    [null, undefined, undefined],
    ['a', undefined, undefined],
    [undefined, undefined, undefined],
  ] as const)('in the payload %j the logs of a and b had reached %s and %s', (payload, a, b) => {
    expect([waitingPlace(payload as Json, 'a'), waitingPlace(payload as Json, 'b')]).toEqual([a, b]);
  });

  it('an id of a call belongs to one log, from its reservation until that log is closed', () => {
    const ids = new CallIds();
    const [one, other] = [emptyLogState(), emptyLogState()];
    for (const member of [one, other]) ids.join(member);
    other.calls.set('old', {} as never);
    expect([ids.reserve(one, 'a'), ids.reserve(one, 'a'), ids.reserve(other, 'a')]).toEqual([true, true, false]);
    expect([ids.reserve(one, 'old'), ids.reserve(other, 'old')]).toEqual([false, true]);
    ids.leave(other);
    expect(ids.reserve(one, 'old')).toBe(true);
    ids.leave(one);
    ids.join(other);
    expect(ids.reserve(other, 'a')).toBe(true);
  });

  it('an id that was pending is never used again', () => {
    const ids = new CallIds();
    const [one, other] = [emptyLogState(), emptyLogState()];
    for (const member of [one, other]) ids.join(member);
    expect([ids.reserve(other, 'asked'), ids.reserve(other, 'not asked')]).toEqual([true, true]);
    ids.leave(other, ['asked']);
    expect([ids.reserve(one, 'asked'), ids.reserve(one, 'not asked')]).toEqual([false, true]);
    ids.markAsked(['earlier']);
    expect(ids.reserve(one, 'earlier')).toBe(false);
  });

  it.each([
    [0, 0, false],
    [1, 0, true],
    [0, 1, true],
    [2, 1, true],
  ])(
    'a call with %i suspensions and %i decisions is remembered after its end: %s',
    (suspension, decisions, isKnown) => {
      const decision = { callId: 'x', suspension: 1, action: 'approve' as const };
      const record = {
        callId: 'x',
        suspension,
        used: new Set(),
        status: 'called',
        decisions: new Map(decisions ? [[1, decision]] : []),
      };
      const ended = new EndedCalls();
      ended.add('c1', { calls: new Map([['x', record]]) } as never);
      expect(ended.find('x')).toEqual(
        isKnown ? { record: { ...record, status: 'ended' }, path: ['c1', 'x'] } : undefined,
      );
      expect(ended.receipt(decision) === 'unknown').toBe(!isKnown);
    },
  );
});

describe('an outcome', () => {
  const handedIn = (...results: unknown[]) =>
    new Map(results.map((result, at) => [`${at}`, { name: 'submit_result', outcome: 'succeeded', args: { result } }]));
  const logOfReplies = (...replies: string[][]) =>
    replies.flatMap((texts) => [
      ...texts.map((text) => ({ type: 'agent-output', item: { type: 'assistant', text } })),
      { type: 'model-reply' },
    ]) as LogEntry[];
  const stopped = (reason: string, cause?: string) => ({ cycle: 'stopped', stop: { reason, ...(cause && { cause }) } });
  const gone = (text: string) => ({ outcome: 'failed', text: `It ended without a result (${text}).` });
  const succeeded = (text: string) => ({ outcome: 'succeeded', text });

  it.each<[string, object, LogEntry[], object | undefined]>([
    ['nothing while it runs', { cycle: 'running' }, [], undefined],
    ['nothing while it runs, even after a submitted result', { cycle: 'running', calls: handedIn('a') }, [], undefined],
    ['the submitted result', { ...stopped('completed', 'submit_result'), calls: handedIn('a') }, [], succeeded('a')],
    [
      'the last submitted result',
      { ...stopped('completed'), calls: handedIn('a', { b: [1] }) },
      [],
      succeeded('{"b":[1]}'),
    ],
    [
      'the submitted result, even if it was interrupted later',
      { ...stopped('interrupted', 'crash'), calls: handedIn('a') },
      [],
      succeeded('a'),
    ],
    ['nothing if a crash interrupted it', stopped('interrupted', 'crash'), logOfReplies(['a']), undefined],
    ['nothing while it waits', { cycle: 'suspended' }, logOfReplies(['a']), undefined],
    [
      'a time-out',
      stopped('interrupted', 'timeout'),
      [],
      { outcome: 'timed_out', text: 'It did not end within its time.' },
    ],
    [
      'a cancel',
      stopped('interrupted', 'user'),
      logOfReplies(['a']),
      { outcome: 'cancelled', text: 'It was cancelled.' },
    ],
    [
      'a spent budget',
      stopped('completed', 'max_budget'),
      logOfReplies(['a']),
      { outcome: 'failed', text: 'It ended without a result: the budget is spent (max_budget).' },
    ],
    [
      'the whole last reply',
      stopped('completed', 'end_turn'),
      logOfReplies(['a'], ['b', 'c']),
      { ...succeeded('bc'), implicit: true },
    ],
    ['an empty reply', stopped('completed', 'end_turn'), logOfReplies(['a'], []), { ...succeeded(''), implicit: true }],
    [
      'the last reply at a limit',
      stopped('completed', 'max_turns'),
      logOfReplies(['a']),
      { ...succeeded('a'), implicit: true },
    ],
    [
      'a failure at a limit without a reply',
      stopped('completed', 'max_turns'),
      logOfReplies(['a'], []),
      gone('max_turns'),
    ],
    ['a failure of its run', stopped('error', 'model'), logOfReplies(['a']), gone('model')],
    ['a failure without a cause', stopped('error'), [], gone('error')],
  ])('is %s', (_, state, log, expected) => {
    expect(outcomeInLog({ ...emptyLogState(), ...state } as LogState, log)).toEqual(expected);
  });

  it('it is reported within the limit, with long texts cut to equal shares and tasks to 200 bytes', () => {
    const ended = (text: string, count: number) =>
      Array.from({ length: count }, (_, at) => ({
        task: { id: `${at}`, task: 't'.repeat(500) },
        ending: { outcome: 'succeeded' as const, text },
      }));
    const all = JSON.parse(reportOf(ended('short', 2), 10_000)) as { task: string; text: string; implicit?: true }[];
    expect(all.map(({ text, implicit }) => [text, implicit])).toEqual([
      ['short', undefined],
      ['short', undefined],
    ]);
    expect(all[0]?.task.length).toBeLessThanOrEqual(200);
    for (const text of ['x'.repeat(50_000), '"'.repeat(50_000), '\u0001'.repeat(50_000), 'é'.repeat(50_000)]) {
      for (const count of [1, 3, 8]) expect(bytesOf(reportOf(ended(text, count), 8_000))).toBeLessThanOrEqual(8_000);
    }
    expect(bytesOf(reportOf(ended('x'.repeat(50_000), 2), 8_000))).toBeGreaterThan(4_000);
  });
});

describe('a budget', () => {
  const used = (inputTokens: number, outputTokens: number, costUsd: number | null): UsageCost => ({
    ...{ usage: { ...zeroUsage.usage, inputTokens, outputTokens }, costUsd },
  });
  it.each([
    ['without limits is never spent', false, false, 1e9, null, [used(1e9, 0, null)], false],
    ['of tokens is spent when it is reached', false, 10, 10, 0, [], true],
    ['of tokens is not spent before', false, 10, 9, 0, [], false],
    ['of tokens includes uncounted input and output', false, 10, 3, 0, [used(2, 3, 0), used(1, 1, 0)], true],
    ['of tokens needs no price', false, 10, 3, null, [used(1, 1, null)], false],
    ['of money is spent when it is reached', 2, false, 0, 2, [], true],
    ['of money is not spent before', 2, false, 0, 1.5, [used(9, 9, 0.25)], false],
    ['of money includes uncounted cost', 2, false, 0, 1.5, [used(0, 0, 0.25), used(0, 0, 0.25)], true],
    ['of money is spent if a price is unknown', 2, false, 0, null, [], true],
    ['of money is spent if a recent price is unknown', 2, false, 0, 0, [used(0, 0, null)], true],
    ['of both is spent if one is', 2, 10, 10, 0, [], true],
  ] as const)('%s', (_, costUsd, tokens, spentTokens, spentUsd, since, expected) => {
    const counted = { tokens: spentTokens, costUsd: spentUsd ?? 0, unpriced: spentUsd === null ? 1 : 0 };
    expect(overBudget({ costUsd, tokens }, () => ({ counted, uncounted: since }))).toBe(expected);
  });
});
