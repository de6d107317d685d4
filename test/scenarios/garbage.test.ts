/** Memory of ended conversations after small garbage collections alone; a full collection may be late. */

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { createAgent, defineTool, type Model, memoryStore } from '../../src/index.ts';

const CONVERSATIONS = 100;
/** A conversation whose memory is kept takes 25,000. */
const BYTES_LEFT = 10_000;

async function* reply(
  isFirst: boolean,
): ReturnType<Model['stream']> extends AsyncIterable<infer Part> ? AsyncGenerator<Part> : never {
  if (isFirst) yield { type: 'tool-call', callId: 'c', name: 'echo', args: '{"text":"a"}' };
  else yield { type: 'text-delta', text: 'done' };
  yield { type: 'finish', reason: isFirst ? 'tool-calls' : 'stop' };
}

it.skipIf(Number.parseInt(process.versions.node, 10) < 24)(
  'a small garbage collection removes a closed and deleted conversation, even if its tool read its signal',
  async () => {
    setFlagsFromString('--expose-gc');
    const collect: (options: { type: 'minor' | 'major' }) => void = runInNewContext('gc');
    const model: Model = { id: 'm', stream: ({ messages }) => reply(messages.at(-1)?.role === 'user') };
    const echo = defineTool({
      name: 'echo',
      description: 'Returns its text.',
      parameters: z.object({ text: z.string() }),
      execute: async ({ text }, { signal }) => (signal.aborted ? '' : text),
    });
    const store = memoryStore();
    const agent = createAgent({ model, store, tools: [echo] });
    const live = async (): Promise<void> => {
      for (let count = 1; count <= CONVERSATIONS; count++) {
        const conversation = await agent.open();
        const run = conversation.send('go');
        for await (const _ of run);
        expect((await run.result).termination).toBe('NaturalEnd');
        await conversation.close();
        await store.delete(conversation.id);
        if (count % 10 === 0) collect({ type: 'minor' });
      }
    };
    await live();
    // A full collection may start on its own in between, and then keeps newer objects. So the smallest figure counts.
    const heldBytes: number[] = [];
    for (let round = 1; round <= 3; round++) {
      collect({ type: 'major' });
      const before = process.memoryUsage().heapUsed;
      await live();
      collect({ type: 'minor' });
      heldBytes.push((process.memoryUsage().heapUsed - before) / CONVERSATIONS);
    }
    expect(Math.min(...heldBytes)).toBeLessThan(BYTES_LEFT);
  },
);
