/**
 * A steer that arrives while the natural end of a run is checked. Invariant: if the run could end, it continues with
 * the steer. If the check fails the run, the steer stays queued until the first model call of the next run.
 */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Conversation, Plugin } from '../../src/index.ts';
import { bench, only } from '../support/agentBench.ts';
import { lines } from '../support/scriptedReplies.ts';

interface Check {
  options: Parameters<typeof bench>[0];
  /** The end of the run that received the steer before its end. */
  first: string;
}

/** Each check runs at the natural end, and sends a steer. */
const CHECKS: { [name: string]: (steer: () => void) => Check } = {
  'a plugin that permits the end': (steer) => ({
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
  'a schema that the answer satisfies': (steer) => ({
    options: { output: schemaOf(steer, true) },
    first: 'run-stop completed end_turn',
  }),
  'a schema that the answer violates, without a remaining repair': (steer) => ({
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

/** The first answer is valid or invalid; every later one is valid. */
function schemaOf(steer: () => void, fits: boolean): z.ZodType {
  let asked = 0;
  return z.string().refine(async () => {
    asked += 1;
    steer();
    return fits || asked > 1;
  });
}

describe('a steer during the check of a natural end', () => {
  it.each(Object.entries(CHECKS))(
    'it is delivered, or stays queued if the check fails the run: %s',
    async (_, made) => {
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
    },
  );
});
