import { describe, expect, it } from 'vitest';
import { type LogEntry, type RunChartOutput, runMachine } from '../../machines/index.ts';
import { sampled, volume } from '../support/tier.ts';
import { entriesOf, everywhere, hold } from './invariants.ts';
import { type Move, Play } from './playScript.ts';
import { type RunScript, runScripts } from './runScripts.ts';
import { toolScripts } from './toolScripts.ts';

/** Returns the end of each call: the outcome of its result, or `suspended`. */
function callsOf(entries: readonly LogEntry[], { suspended, kept, reruns }: RunChartOutput): Record<string, string> {
  const results = entriesOf(entries, 'tool-result').map(({ callId, outcome }) => [callId, outcome] as const);
  const open = [...suspended, ...kept, ...reruns].map(({ call }) => [call.callId, 'suspended'] as const);
  const all = [...results, ...open];
  hold(new Set(all.map(([callId]) => callId)).size === all.length, `each call once: ${JSON.stringify(all)}`);
  return Object.fromEntries(all);
}

function callIdsOf({ input }: RunScript, entries: readonly LogEntry[]): string[] {
  const open = [...input.suspended, ...input.kept, ...input.reruns].map(({ call }) => call.callId);
  const made = entriesOf(entries, 'agent-output').flatMap(({ item }) =>
    item.type === 'tool-call' ? [item.callId] : [],
  );
  return [...open, ...made].sort();
}

/** Plays the moves to the end, and checks the invariants after each. */
function play(script: RunScript, moves: readonly Move[], cut: (play: Play) => void, toTheEnd = true): Play {
  const played = new Play(runMachine, script.input);
  const check = (): void => {
    for (const invariant of everywhere) invariant(played.ride.state, played.ride);
  };
  check();
  for (const move of moves) {
    played.move(move);
    check();
  }
  cut(played);
  if (toTheEnd) played.finish();
  check();
  return played;
}

/** Checks that the run has ended and that every call has a result or waits. */
function over(script: RunScript, { ride }: Play): RunChartOutput {
  const { status, output } = ride.state;
  expect(status).toBe('done');
  const ended = output as RunChartOutput;
  expect(Object.keys(callsOf(ride.journal.entries, ended)).sort()).toEqual(callIdsOf(script, ride.journal.entries));
  const last = ride.journal.entries.at(-1);
  if (ended.durable) expect(last).toMatchObject({ type: 'checkpoint', boundary: 'RunFinished' });
  return ended;
}

const nothing = (): void => {};
const send = (event: object) => (played: Play) => played.ride.deliver(event as { type: string });
const error = { code: 'disk', message: 'no space left' };

const scripts = [...runScripts, ...toolScripts];

describe('a run with its real round, calls and gate', () => {
  it.each(scripts.map((script) => [script.name, script] as const))('%s', (_, script) => {
    const played = play(script, script.moves, nothing);
    const output = over(script, played);
    expect(output.end.termination).toBe(script.ends);
    expect(callsOf(played.ride.journal.entries, output)).toEqual(script.calls);
  });
});

/** Each script is interrupted after each of its moves, until the run is in its last states. */
const cuts = sampled(scripts, volume.cutOf).flatMap((script) =>
  [...script.moves.keys()]
    .filter((count) => typeof play(script, script.moves.slice(0, count), nothing, false).ride.state.value === 'object')
    .map((count) => [script.name, count, script] as const),
);

describe('after an early end each call has one result or waits', () => {
  it.each(cuts)('%s: cancelled after move %i', (_, count, script) => {
    const output = over(script, play(script, script.moves.slice(0, count), send({ type: 'run.cancelled' })));
    expect(output.end).toMatchObject({ termination: 'Cancelled', cause: 'cancelled' });
    expect(output).toMatchObject({ suspended: [], kept: [], reruns: [] });
  });

  it.each(cuts)('%s: its deadline passes after move %i', (_, count, script) => {
    const ring = send({ type: 'timer.elapsed', id: 'r/deadline' });
    const output = over(script, play(script, script.moves.slice(0, count), ring));
    expect(output.end).toMatchObject({ termination: 'Cancelled', cause: 'timeout' });
  });

  it.each(cuts)('%s: an executor fails after move %i', (_, count, script) => {
    const fail = send({ type: 'effect.failed', id: 'r/', cause: 'executor', error });
    const output = over(script, play(script, script.moves.slice(0, count), fail));
    expect(output.end).toMatchObject({ termination: 'Error', cause: 'executor', error });
  });

  it.each(cuts)('%s: the store fails in the step after move %i', (_, count, script) => {
    const refuse = (played: Play): void => {
      played.ride.journal.refuse = new Error('no space left');
      const next = script.moves[count];
      if (next) played.move(next);
    };
    const { end, durable } = over(script, play(script, script.moves.slice(0, count), refuse));
    expect([end.termination, end.cause, durable]).not.toContain(undefined);
    expect(durable || end.cause === 'store').toBe(true);
  });
});
