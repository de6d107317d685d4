/**
 * A steer that comes while the natural end of a run is checked. Rule: where the run could end, it goes on with the steer; where the check
 * fails the run, the steer stays queued and is delivered before the first model call of the next run.
 */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Conversation, Plugin } from '../../src/index.ts';
import { bench, only } from '../support/agent.ts';
import { lines } from '../support/model.ts';

interface Check {
  options: Parameters<typeof bench>[0];
  /** How the run ends that had the steer before its end. */
  first: string;
}

/** Each is asked at the natural end, and steers while it is. */
const CHECKS: { [name: string]: (steer: () => void) => Check } = {
  'a plugin that lets it end': (steer) => ({
    options: { plugins: [endOf(steer, () => undefined)] },
    first: 'run-stop completed end_turn',
  }),
  'a required plugin that fails': (steer) => ({
    options: {
      plugins: [
        endOf(steer, () => {
          throw new Error('not so');
        }),
      ],
    },
    first: 'run-stop error executor',
  }),
  'a schema that the answer fits': (steer) => ({
    options: { output: schemaOf(steer, true) },
    first: 'run-stop completed end_turn',
  }),
  'a schema that the answer does not fit, with no repair left': (steer) => ({
    options: { output: schemaOf(steer, false), policies: { limits: { outputRepairs: 0 } } },
    first: 'run-stop error executor',
  }),
};

const endOf = (steer: () => void, says: () => undefined): Plugin => ({
  name: 'end',
  required: true,
  async naturalEnd() {
    steer();
    return says();
  },
});

/** The first answer fits or does not, every later one fits. */
function schemaOf(steer: () => void, fits: boolean): z.ZodType {
  let asked = 0;
  return z.string().refine(async () => {
    asked += 1;
    steer();
    return fits || asked > 1;
  });
}

describe('a steer that comes in the middle of the natural end', () => {
  it.each(Object.entries(CHECKS))('of a run that is checked by %s', async (_, made) => {
    let conversation: Conversation | undefined;
    let outcome: string | undefined;
    const { options = {}, first } = made(() => {
      if (outcome !== undefined) return;
      outcome = 'queued';
      void conversation?.steer('turn left').delivered.then((how) => {
        outcome = how;
      });
    });
    const on = await bench({ ...options, replies: ['one', 'two', 'three'] });
    conversation = on.conversation;
    await conversation.send('hi').result;
    const isFailed = first.includes('error');
    expect(only(conversation.log(), 'run-stop')).toEqual([first]);
    expect(conversation.queue.map(({ kind }) => kind)).toEqual(isFailed ? ['steer'] : []);
    expect(outcome).toBe(isFailed ? 'queued' : 'delivered');
    expect(on.model.calls.length).toBe(isFailed ? 1 : 2);
    await conversation.send('again').result;
    const { messages = [] } = on.model.calls[isFailed ? 1 : 2] ?? {};
    expect(lines(messages).filter((line) => line.startsWith('user'))).toEqual(
      isFailed ? ['user hi', 'user again', 'user turn left'] : ['user hi', 'user turn left', 'user again'],
    );
    await on.agent.close();
  });
});
