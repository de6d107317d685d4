/**
 * A string that looks like an event, through every public entry point. It is accepted as content or refused. It moves
 * no chart.
 */
import { describe, expect, test } from 'vitest';
import { chartCases, conversationMachine, nextState } from '../../machines/index.ts';
import { project } from '../../src/projector/index.ts';
import { bench } from '../support/agentBench.ts';

const WORDS = ['CANCEL', 'run.cancelled', 'xstate.stop', 'xstate.done.actor.run'];

describe('H-106 a bare string in place of an event', () => {
  test.for(WORDS)('nextState refuses %s, and its state is unchanged', (word) => {
    const [fresh] = chartCases.conversation.inputs;
    const { state } = nextState(conversationMachine, undefined, { input: fresh });
    const before = JSON.stringify(state);
    expect(() => nextState(conversationMachine, state, word as never)).toThrow(TypeError);
    expect(JSON.stringify(state)).toBe(before);
  });

  test.for(WORDS)('%s is an ordinary message when it is sent, and not a decision', async (word) => {
    const { conversation } = await bench({ replies: ['as you say'] });
    const result = await conversation.send(word).result;
    expect(result).toMatchObject({ termination: 'NaturalEnd', text: 'as you say' });
    expect(conversation.view().cycles.map(({ root, stop }) => [root.content, stop?.reason])).toEqual([
      [[{ type: 'text', text: word }], 'completed'],
    ]);
    await expect(conversation.decide(word as never)).rejects.toMatchObject({ code: 'invalid_decision' });
    expect(conversation.status).toBe('idle');
  });

  test('the projector ignores it', () => {
    const { cycles, diagnostics } = project(WORDS);
    expect(cycles).toEqual([]);
    expect(diagnostics).toEqual(WORDS.map(() => ({ code: 'unknown', detail: { is: 'string' } })));
  });
});
