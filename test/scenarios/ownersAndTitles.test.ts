/** Owners, titles and expiry through the public names, on every store of this process. */
import { describe, expect, it } from 'vitest';
import { createAgent, deleteBefore, type LogHandle, type LogStore, memoryStore } from '../../src/index.ts';
import { scripted } from '../support/scriptedReplies.ts';

/** A store whose appends fail while `refuses` is true. */
function failingStore(): { store: LogStore; disk: { refuses: boolean } } {
  const memory = memoryStore();
  const disk = { refuses: false };
  const open = async (...args: Parameters<LogStore['open']>): Promise<LogHandle> => {
    const handle = await memory.open(...args);
    return {
      read: (from) => handle.read(from),
      close: () => handle.close(),
      append: async (entries, seq) => {
        if (disk.refuses) throw new Error('the disk is full');
        return handle.append(entries, seq);
      },
    };
  };
  return { store: { open, list: (options) => memory.list(options), delete: (id) => memory.delete(id) }, disk };
}

describe('a title', () => {
  it('is the first words of the first message, until the conversation is renamed', async () => {
    const agent = createAgent({ model: scripted(['done']) });
    const conversation = await agent.open('a');
    await conversation.send('Pay the rent.').result;
    expect((await agent.list())[0]?.title).toBe('Pay the rent.');
    await conversation.rename('Rent');
    expect(conversation.log().at(-1)).toMatchObject({ type: 'renamed', title: 'Rent', runId: null });
    expect((await agent.list())[0]?.title).toBe('Rent');
    expect(conversation.status).toBe('idle');
    await agent.close();
  });

  it.each(['', ' ', 'x'.repeat(201), 5, undefined])('cannot be %j', async (title) => {
    const conversation = await createAgent({ model: scripted([]) }).open('a');
    await expect(conversation.rename(title as string)).rejects.toMatchObject({ code: 'configuration' });
    expect(conversation.log()).toHaveLength(1);
    await conversation.close();
  });

  it('that cannot be stored rejects, and the conversation continues', async () => {
    const { store, disk } = failingStore();
    const conversation = await createAgent({ model: scripted(['done']), store }).open('a');
    disk.refuses = true;
    await expect(conversation.rename('Rent')).rejects.toThrow('the disk is full');
    disk.refuses = false;
    await conversation.rename('The rent');
    expect((await conversation.send('go').result).text).toBe('done');
    await conversation.close();
    await expect(conversation.rename('late')).rejects.toMatchObject({ code: 'closed' });
  });
});

describe('an owner', () => {
  it('is set when a conversation is created, and never changes', async () => {
    const agent = createAgent({ model: scripted([]) });
    const conversation = await agent.open('a', { owner: 'ann' });
    expect(conversation.owner).toBe('ann');
    await expect(agent.open('a', { owner: 'bob' })).rejects.toMatchObject({ code: 'not_found' });
    await expect(agent.open('a', { owner: 'ann' })).rejects.toMatchObject({ code: 'session_busy' });
    await conversation.close();
    for (const options of [{ owner: 'bob' }, { owner: 'bob', existing: true }, { owner: 'bob', history: [] }])
      await expect(agent.open('a', options)).rejects.toMatchObject({ code: 'not_found' });
    const again = await agent.open('a');
    expect(again.owner).toBe('ann');
    await again.close();
    expect(await (await agent.open('b')).owner).toBe(null);
    await expect(agent.open('b', { owner: 'ann' })).rejects.toMatchObject({ code: 'not_found' });
    await agent.close();
  });

  it('limits a list also if the store supports no options', async () => {
    const memory = memoryStore();
    const store: LogStore = {
      open: (id) => memory.open(id),
      list: () => memory.list(),
      delete: (id) => memory.delete(id),
    };
    const agent = createAgent({ model: scripted([]), store });
    for (const [id, owner] of Object.entries({ a: 'ann', b: 'bob', c: 'ann' })) await agent.open(id, { owner });
    expect((await agent.list({ owner: 'bob' })).map(({ id }) => id)).toEqual(['b']);
    const [first] = await agent.list({ owner: 'ann', limit: 1 });
    const rest = await agent.list({ owner: 'ann', limit: 1, cursor: first?.cursor ?? '' });
    expect([first?.id, ...rest.map(({ id }) => id)].sort()).toEqual(['a', 'c']);
    await agent.close();
  });

  it.each([{ limit: 0 }, { limit: 1.5 }, { owner: '' }, { status: 'x' }, { cursor: 'x' }, { other: 1 }])(
    'and a list refuse the options %j',
    async (options) => {
      const agent = createAgent({ model: scripted([]) });
      await expect(agent.list(options as never)).rejects.toMatchObject({ code: 'configuration' });
    },
  );
});

describe('expiry', () => {
  it('deletes what was last used before a time, and keeps what is open', async () => {
    const store = memoryStore();
    for (let at = 0; at < 450; at += 1) {
      const agent = createAgent({ model: scripted([]), store, ports: { now: () => 1000 + at } });
      await (await agent.open(`c${at}`)).close();
    }
    const open = await createAgent({ model: scripted([]), store, ports: { now: () => 1 } }).open('c7');
    const deleted = await deleteBefore(store, 1440);
    expect(deleted).toHaveLength(439);
    const kept = (await store.list()).map(({ id }) => id);
    expect(kept.sort()).toEqual(['c440', 'c441', 'c442', 'c443', 'c444', 'c445', 'c446', 'c447', 'c448', 'c449', 'c7']);
    await open.close();
    expect(await deleteBefore(store, 1440)).toEqual(['c7']);
    await expect(deleteBefore(store, Number.NaN)).rejects.toMatchObject({ code: 'configuration' });
  });
});
