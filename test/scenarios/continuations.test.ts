/** What the model is told in place of a user's message stands in the log only where it is called again (conversation-requirements, 003). */
import { describe, expect, it } from 'vitest';
import { bench, only } from '../support/agent.ts';
import { finish, lines, t } from '../support/model.ts';

const nothing = [finish('stop')];
const paused = (text: string) => [t(text), finish('pause')];

describe('a continuation is written only where another call follows', () => {
  it('H-034: not behind the empty reply that ends the run, nor is it said there that the model is asked again', async () => {
    const { conversation, model } = await bench({ replies: [nothing, nothing, nothing, 'here I am'] });
    expect((await conversation.send('hi').result).cause).toBe('empty_replies');
    expect(only(conversation.log(), 'notice', 'continuation', 'run-stop')).toEqual([
      'notice empty_reply',
      'continuation empty_reply',
      'notice empty_reply',
      'continuation empty_reply',
      'run-stop error empty_replies',
    ]);
    await conversation.send('are you there?').result;
    expect(lines(model.calls[3]?.messages ?? []).at(-1)).toBe('user are you there?');
    expect(lines(model.calls[3]?.messages ?? [])).toHaveLength(4);
  });

  it('not behind a pause at the limit of turns; a resumption tells the model itself', async () => {
    const policies = { limits: { turns: 2 } };
    const { conversation, model } = await bench({ replies: [paused('one'), paused('two')], policies });
    expect((await conversation.send('hi').result).cause).toBe('max_turns');
    expect(only(conversation.log(), 'continuation')).toEqual(['continuation pause']);
    expect(model.calls).toHaveLength(2);
    await conversation.resume().result;
    expect(only(conversation.log(), 'continuation')).toEqual(['continuation pause', 'continuation resume']);
  });
});
