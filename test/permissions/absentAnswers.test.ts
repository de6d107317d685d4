/**
 * `decide` of the host, which may never answer: its time limit, a cancel and a close end the wait, and nothing remains
 * of it. A late answer has no effect.
 */
import { describe, expect, it, vi } from 'vitest';
import * as z from 'zod';
import { defineTool } from '../../src/index.ts';
import { type PermissionOptions, permissions } from '../../src/node.ts';
import { bench, only } from '../support/agentBench.ts';
import { Census, NOTHING } from '../support/resourceCensus.ts';
import { call } from '../support/scriptedReplies.ts';
import { flush } from '../support/virtualClock.ts';

type Decide = NonNullable<PermissionOptions['decide']>;

async function asking(decide: Decide) {
  const census = new Census();
  const ran: string[] = [];
  const tool = defineTool({
    name: 'deploy',
    description: 'Deploys',
    parameters: z.object({}),
    execute: (_, { callId }) => void ran.push(callId),
  });
  const made = await bench({
    tools: [tool],
    plugins: [permissions({ decide })],
    replies: [[call('c1', 'deploy')], 'done'],
    clock: census.clock,
  });
  return { ...made, census, ran };
}

/** Answers when the test permits it. */
function held(answer: unknown) {
  let goOn = (): void => {};
  const wait = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const decide = vi.fn(() => wait.then(() => answer) as ReturnType<Decide>);
  return { decide, goOn: () => goOn() };
}

const WAYS = ['time limit', 'cancel', 'close'] as const;
const ANSWERS = ['allow', 'deny', 'ask', undefined] as const;

describe('a decide that does not answer', () => {
  it.each(WAYS.flatMap((way) => ANSWERS.map((answer) => [way, answer] as const)))(
    'its call is over after a %s, and the late answer %j has no effect',
    async (way, answer) => {
      const { decide, goOn } = held(answer);
      const { conversation, agent, census, ran } = await asking(decide);
      const run = conversation.send('go');
      await flush();
      expect(decide).toHaveBeenCalledTimes(1);
      if (way === 'time limit') expect(await census.clock.until(run.result, 60_000)).toBe(30_000);
      else if (way === 'cancel') await census.clock.until(run.cancel());
      else await census.clock.until(conversation.close());
      const { pending, termination } = await run.result;
      const isWaiting = way === 'time limit';
      expect([pending.map(({ callId }) => callId), termination === 'Cancelled']).toEqual([
        isWaiting ? ['c1'] : [],
        !isWaiting,
      ]);
      expect(only(conversation.log(), 'diagnostic')).toEqual(isWaiting ? ['diagnostic permission_decide_error'] : []);
      const before = JSON.stringify(conversation.log());
      goOn();
      await flush();
      expect([JSON.stringify(conversation.log()), ran]).toEqual([before, []]);
      await census.clock.until(agent.close());
      expect(census.left()).toEqual(NOTHING);
    },
  );

  it.each(['allow', 'deny'] as const)('an answer %s just before the limit counts', async (answer) => {
    const { decide, goOn } = held(answer);
    const { conversation, census, ran } = await asking(decide);
    const run = conversation.send('go');
    await flush();
    await census.clock.advance(29_999);
    goOn();
    await run.result;
    expect(ran).toEqual(answer === 'allow' ? ['c1'] : []);
    expect(census.clock.waiting).toBe(0);
  });
});
