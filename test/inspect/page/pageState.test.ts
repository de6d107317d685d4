/** Repeated use of the page: another conversation, another connection, another server, another log of the same name. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { conversationEntry, logOf, pageBench, waitingLog } from './pageBench.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** Two conversations whose models use the same call ids; A is open. */
async function twoConversations() {
  const page = await pageBench();
  const { server } = page;
  server.greet();
  for (const id of ['A', 'B']) {
    server.conversation(id);
    server.entries(id, waitingLog(id));
  }
  page.openConversation('A');
  server.take();
  const card = () => {
    const [only] = page.cards();
    if (!only || page.cards().length !== 1) throw new Error('expected one card');
    return only;
  };
  return { ...page, card };
}

const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 10; turn++) await Promise.resolve();
};

describe('a channel to an app of this browser', () => {
  it.each(['begun', 'over'])(
    'it leaves no timer after the app reports that it is %s, whenever that is',
    async (word) => {
      await pageBench();
      vi.useRealTimers();
      vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
      const posted: unknown[] = [];
      class Channel {
        onmessage = (_: { data: object }): void => undefined;
        isOpen = true;
        postMessage(message: unknown): void {
          if (!this.isOpen) throw new DOMException('the channel is closed', 'InvalidStateError');
          posted.push(message);
        }
        close(): void {
          this.isOpen = false;
        }
      }
      const channels: Channel[] = [];
      vi.stubGlobal(
        'BroadcastChannel',
        class extends Channel {
          constructor() {
            super();
            channels.push(this);
          }
        },
      );
      const { dialChannel } = await import('../../../inspector/state/serverConnection.ts');
      for (const beats of [0, 1, 3]) {
        let closings = 0;
        dialChannel('a')({ open() {}, frame() {}, closed: () => void closings++ });
        posted.length = 0;
        vi.advanceTimersByTime(beats * 5_000);
        expect([posted.length, vi.getTimerCount()]).toEqual([beats, 1]);
        channels.at(-1)?.onmessage({ data: { [word]: true } });
        vi.advanceTimersByTime(60_000);
        expect([closings, posted.length, vi.getTimerCount()]).toEqual([1, beats, 0]);
      }
    },
  );
});

describe('two conversations with equal call ids', () => {
  it('they have separate cards: a receipt on the call of one is not a receipt on the call of the other', async () => {
    const { server, card, decide, sent, openConversation } = await twoConversations();
    const ofA = card();
    const done = decide(ofA, { action: 'approve' });
    const [asked] = server.take();
    expect(asked).toMatchObject({ type: 'decide', conversation: 'A', decision: { callId: 'call_0', suspension: 1 } });
    if (asked) server.answer(asked, { receipt: 'applied' });
    await settled();
    const [resumed] = server.take();
    expect(resumed).toMatchObject({ type: 'resume', conversation: 'A' });
    if (resumed) server.answer(resumed, { runId: 'r' });
    await done;
    expect(sent.value.get(ofA.key)).toEqual({ state: 'said', words: 'allowed' });
    openConversation('B');
    expect(card().call.callId).toBe('call_0');
    expect(sent.value.get(card().key)).toBeUndefined();
    void decide(card(), { action: 'deny' });
    expect(server.take()).toMatchObject([{ type: 'decide', conversation: 'B', decision: { action: 'deny' } }]);
  });

  it('their own decisions resume them, even if the other one is opened before the receipt arrives', async () => {
    const { server, card, decide, openConversation } = await twoConversations();
    void decide(card(), { action: 'approve' });
    const [asked] = server.take();
    openConversation('B');
    if (asked) server.answer(asked, { receipt: 'applied' });
    await settled();
    expect(server.take()).toMatchObject([{ type: 'resume', conversation: 'A' }]);
  });

  it('they have redacted values of their own, in whatever order they are opened, and those that come later are added', async () => {
    const { server, openConversation, redactions } = await pageBench();
    server.greet();
    const text = (words: string) => ({ type: 'agent-output', item: { type: 'assistant', text: words } });
    const logs = {
      A: [text('no'), text('[redacted]'), text('a [redacted] and [redacted]')],
      B: [text('b [redacted]'), text('no'), text('no'), text('no')],
      C: [text('no')],
    };
    for (const [id, bodies] of Object.entries(logs)) {
      server.conversation(id);
      server.entries(id, logOf(id, bodies));
    }
    const shown = { A: [1, 2], B: [0], C: [] };
    for (const id of ['A', 'B', 'A', 'C', 'B', 'C', 'A'] as const) {
      openConversation(id);
      expect([id, redactions.value.map(({ index }) => index)]).toEqual([id, shown[id]]);
    }
    server.entries('A', logOf('A', [...logs.A, text('no'), text('[redacted]')]).slice(3));
    expect(redactions.value.map(({ index }) => index)).toEqual([1, 2, 4]);
    openConversation('C');
    openConversation('A');
    expect(redactions.value.map(({ index }) => index)).toEqual([1, 2, 4]);
  });

  it('a fork has the redacted values up to its last entry, and its original has each of its own once', async () => {
    const { server, put, openConversation, entries, redactions } = await pageBench();
    server.greet();
    server.conversation('A');
    const notices = [1, 2, 3].map((place) => ({ type: 'notice', code: 'n', text: `${place}: [redacted]` }) as const);
    server.entries('A', logOf('A', [conversationEntry, ...notices]));
    openConversation('A');
    const seqs = () => redactions.value.map(({ seq }) => seq);
    expect(seqs()).toEqual([1, 2, 3]);
    const forked = entries.value.slice(0, 2);
    put({ id: 'A at 1', source: 'file', of: 'runchart', entries: forked, broken: [], isFork: true });
    openConversation('A at 1');
    expect(seqs()).toEqual([1]);
    openConversation('A');
    expect(seqs()).toEqual([1, 2, 3]);
  });

  it('they do not share a first press of X: it cancels the conversation that was open then, or none', async () => {
    const { server, pressCancel, openConversation } = await twoConversations();
    pressCancel(10_000);
    openConversation('B');
    pressCancel(10_500);
    expect(server.take()).toEqual([]);
    pressCancel(11_000);
    expect(server.take()).toMatchObject([{ type: 'cancel', conversation: 'B' }]);
  });
});

describe('a decision that no server takes', () => {
  it.each(['x', 'ä'])('is refused by the page with its size, and the buttons stay: many of %s', async (letter) => {
    const { server, card, decide, sent } = await twoConversations();
    const text = letter.repeat(64 * 1024);
    const refused = await decide(card(), { action: 'edit', args: { text } });
    expect(refused).toMatch(/^too large to be sent from here: \d+ bytes, at most 65536$/);
    expect([server.take(), sent.value.size]).toEqual([[], 0]);
    const args = { text: letter.repeat(64 * 512 - 100) };
    void decide(card(), { action: 'edit', args });
    expect(server.take()).toMatchObject([{ type: 'decide', decision: { args } }]);
  });
});

describe('a second question about one call', () => {
  it('it has its own buttons, and its decision names it', async () => {
    const { server, card, decide, sent } = await twoConversations();
    const first = card();
    void decide(first, { action: 'approve' });
    const [asked] = server.take();
    if (asked) server.answer(asked, { receipt: 'applied' });
    await settled();
    server.take();
    const ofCall = { callId: 'call_0' };
    const more = logOf('A', [
      ...Array(8).fill({ type: 'checkpoint', boundary: 'RunFinished' }),
      { type: 'decision', ...ofCall, suspension: 1, decision: { ...ofCall, action: 'approve' } },
      { type: 'run-resumed', of: 'run', runId: 'r2' },
      { type: 'tool-started', ...ofCall, idempotencyKey: 'A/call_0/1', runId: 'r2' },
      { type: 'tool-suspended', ...ofCall, suspension: 2, reason: 'elicitation', runId: 'r2' },
      { type: 'run-suspended', waiting: ['call_0'], runId: 'r2' },
    ]);
    server.entries('A', more.slice(8));
    expect(card().suspension.number).toBe(2);
    expect(sent.value.get(first.key)).toEqual({ state: 'said', words: 'allowed' });
    expect(sent.value.get(card().key)).toBeUndefined();
    void decide(card(), { action: 'deny' });
    expect(server.take()).toMatchObject([
      { type: 'decide', conversation: 'A', decision: { ...ofCall, suspension: 2 } },
    ]);
  });
});

describe('letter keys', () => {
  const states = ['nothing', 'sending', 'receipt', 'editing', 'giving'] as const;
  const table = [false, true].flatMap((isShown) =>
    [399, 400].flatMap((ms) => states.map((state) => ({ isShown, ms, state }))),
  );

  it.each(table)('they act only on visible buttons: %o', async ({ isShown, ms, state }) => {
    const { card, showCard, acceptsKeys, sent, editing, giving } = await twoConversations();
    const { key } = card();
    const remove = showCard(key, 1000);
    if (!isShown) remove();
    if (state === 'sending') sent.value = new Map([[key, { state: 'sending' }]]);
    if (state === 'receipt') sent.value = new Map([[key, { state: 'said', words: 'held' }]]);
    if (state === 'editing') editing.value = key;
    if (state === 'giving') giving.value = { key, what: 'reason' };
    expect(acceptsKeys(card(), 1000 + ms)).toBe(isShown && ms >= 400 && state === 'nothing');
  });

  it('they wait again after a card was removed and drawn again', async () => {
    const { card, showCard, acceptsKeys } = await twoConversations();
    showCard(card().key, 0)();
    showCard(card().key, 5000);
    expect(acceptsKeys(card(), 5100)).toBe(false);
    expect(acceptsKeys(card(), 5400)).toBe(true);
  });

  it('they decide once: a card with a receipt sends nothing more', async () => {
    const { server, card, decide } = await twoConversations();
    void decide(card(), { action: 'approve' });
    void decide(card(), { action: 'deny' });
    expect(server.take()).toHaveLength(1);
  });
});

describe('a second connection', () => {
  it('it requests the records after the last one, and each entry is there once', async () => {
    const { server, entries } = await twoConversations();
    server.drop();
    await vi.advanceTimersByTimeAsync(250);
    expect(server.dials).toBe(2);
    server.greet('s', 20, 20);
    expect(server.take()).toMatchObject([{ type: 'subscribe', from: 20, session: 's' }]);
    const [first] = waitingLog('A');
    const result = {
      type: 'decision',
      callId: 'call_0',
      suspension: 1,
      decision: { callId: 'call_0', action: 'deny' },
    };
    if (first) server.entries('A', [first, { ...first, ...result, seq: 8, at: 8 } as typeof first]);
    expect(entries.value.map(({ seq }) => seq)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
  });

  it('it restores the buttons of a pending decision', async () => {
    const { server, card, decide, sent } = await twoConversations();
    const refused = decide(card(), { action: 'approve' });
    server.drop();
    expect(await refused).toBe('the connection was lost');
    expect(sent.value.size).toBe(0);
  });

  it('with another server it starts again: no conversation, record or receipt of the first one remains', async () => {
    const { server, card, decide, sent, conversations, openConversation } = await twoConversations();
    void decide(card(), { action: 'approve' });
    const [asked] = server.take();
    if (asked) server.answer(asked, { receipt: 'applied' });
    await settled();
    server.drop();
    await vi.advanceTimersByTimeAsync(250);
    server.restart();
    server.greet('another');
    expect(conversations.value.size).toBe(0);
    server.conversation('A');
    server.entries('A', waitingLog('A', 'call_0', 90_000));
    openConversation('A');
    expect(sent.value.get(card().key)).toBeUndefined();
  });
});

describe('a conversation that is opened again', () => {
  it('it continues at its last entry', async () => {
    const { server, entries } = await twoConversations();
    server.conversation('A', 'idle');
    server.entries('A', waitingLog('A').slice(0, 3));
    expect(entries.value).toHaveLength(8);
  });

  it('with a new log of the same name it shows the new log only, and no receipt of the old one', async () => {
    const { server, card, decide, sent, entries } = await twoConversations();
    void decide(card(), { action: 'approve' });
    const [asked] = server.take();
    if (asked) server.answer(asked, { receipt: 'applied' });
    await settled();
    const again = waitingLog('A', 'call_0', 60_000);
    server.conversation('A', 'idle');
    server.entries('A', again);
    expect(entries.value).toEqual(again);
    expect(sent.value.get(card().key)).toBeUndefined();
  });
});

describe('the cycle of the sequence', () => {
  it('is chosen for one conversation', async () => {
    const { openConversation } = await twoConversations();
    const { pickedCycle } = await import('../../../inspector/view/panels/Sequence.tsx');
    pickedCycle.value = 7;
    openConversation('B');
    expect(pickedCycle.value).toBeUndefined();
  });
});
