import { describe, expect, it } from 'vitest';
import {
  applyEntry,
  type ConversationInput,
  conversationMachine,
  emptyLogState,
  type LogEntry,
  type LogState,
  openCalls,
} from '../../machines/internal.ts';
import { sampled, volume } from '../support/tier.ts';
import { type ConversationScript, conversationScripts } from './conversationScripts.ts';
import { entriesOf, everywhere } from './invariants.ts';
import { Play } from './playScript.ts';

const ends = (entries: readonly LogEntry[]): string[] =>
  entries.flatMap((entry) =>
    entry.type === 'run-stop' ? [entry.reason] : entry.type === 'run-suspended' ? ['suspended'] : [],
  );

function logStateOf(entries: readonly LogEntry[]): LogState {
  const knowledge = emptyLogState();
  for (const entry of entries) applyEntry(knowledge, entry);
  return knowledge;
}

function play({ input, moves }: ConversationScript, count: number, cut: (play: Play) => void = () => {}): Play {
  const played = new Play(conversationMachine, input);
  for (const move of moves.slice(0, count)) {
    played.move(move);
    for (const invariant of everywhere) invariant(played.ride.state, played.ride);
  }
  cut(played);
  played.finish();
  for (const invariant of everywhere) invariant(played.ride.state, played.ride);
  return played;
}

const callsOf = (open: ConversationInput['open']) => ({
  suspended: open.suspended.map(({ call, suspension }) => `${call.callId}#${suspension}`),
  kept: open.kept.map(({ call }) => call.callId),
  decisions: open.decisions.map(({ callId, suspension }) => `${callId}#${suspension}`),
});

/** Checks that the chart at rest has the same facts as a restart would read from the log. */
function atRest({ ride }: Play): void {
  const { state, journal } = ride;
  expect(state.matches('busy' as never)).toBe(false);
  const knowledge = logStateOf(journal.entries);
  const { queue, open } = state.context as ConversationInput;
  expect(queue.map(({ messageId }) => messageId)).toEqual(knowledge.queue.map(({ messageId }) => messageId));
  expect(state.matches('waiting')).toBe(knowledge.cycle === 'suspended');
  expect(callsOf(open)).toEqual(callsOf(openCalls(knowledge)));
  // The log does not contain a stop that could not be stored, but the conversation's state shows it.
  if (knowledge.cycle === 'running') expect(state.value).toEqual({ idle: 'error' });
}

describe('a conversation with its real runs', () => {
  it.each(conversationScripts.map((script) => [script.name, script] as const))('%s', (_, script) => {
    const played = play(script, script.moves.length);
    expect(ends(played.ride.journal.entries)).toEqual(script.ends);
    expect(played.ride.state.value).toEqual(script.rests);
    atRest(played);
  });
});

const cuts = sampled(conversationScripts, volume.cutOf).flatMap((script) =>
  [...script.moves.keys()].map((count) => [script.name, count, script] as const),
);

describe('a conversation has the state of its log, wherever it is cut', () => {
  it.each(cuts)('%s: cancelled after move %i', (_, count, script) => {
    const played = play(script, count, ({ ride }) => ride.deliver({ type: 'cancel.requested' }));
    atRest(played);
    expect(entriesOf(played.ride.journal.entries, 'run-suspended').length).toBeLessThanOrEqual(1);
  });

  it.each(cuts)('%s: the store fails in the step after move %i', (_, count, script) => {
    const played = play(script, count, (now) => {
      now.ride.journal.refuse = new Error('no space left');
      const next = script.moves[count];
      if (next) now.move(next);
    });
    atRest(played);
  });
});
