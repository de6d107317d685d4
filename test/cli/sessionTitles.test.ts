/** Titles of sessions that a model makes after the first completed request. */
import { setImmediate } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { titleSessions } from '../../src/cli/sessions/sessionTitles.ts';
import type { Model } from '../../src/index.ts';
import { createAgent, ModelError, memoryStore } from '../../src/index.ts';
import { call, deaf, during, finish, type Reply, scripted, t } from '../support/scriptedReplies.ts';

const ESC = '\u001b';
/** Not repeated. */
const REFUSED = new ModelError({ code: 'bad-request', message: 'no' });

/** An agent whose sessions get titles. `replies` are those of the session, `answers` those with titles. */
function titled(replies: readonly Reply[], answers: readonly Reply[], timeoutMs?: number) {
  const store = memoryStore();
  const model = scripted(replies);
  const namer = scripted(answers);
  const agent = createAgent({ model, store });
  onTestFinished(() => agent.close());
  const end = titleSessions(agent, { model: () => namer, ...(timeoutMs !== undefined && { timeoutMs }) });
  const titleOf = async (id: string) => (await store.list()).find((row) => row.id === id)?.title;
  return { agent, model, namer, end, titleOf };
}

/** The answers of models whose signal has ended: every call for a title is over. */
const isOver = (namer: ReturnType<typeof scripted>, calls = 1) =>
  expect
    .poll(() => namer.signals.length === calls && namer.signals.every(({ aborted }) => aborted), { interval: 5 })
    .toBe(true);

describe('the title of a session', () => {
  test('is made once, after the first completed request, and nothing else of the call is in the log', async () => {
    const { agent, model, namer, titleOf } = titled([REFUSED, 'The bug is mended.', 'more'], ['Mend the parser']);
    const c = await agent.open('c');
    await c.send('the parser drops the last line').result;
    expect(namer.calls).toHaveLength(0);
    expect(await titleOf('c')).toBe('the parser drops the last line');
    await c.send('mend it').result;
    await expect.poll(() => titleOf('c')).toBe('Mend the parser');
    const before = c.log().length;
    await c.send('and more').result;
    await isOver(namer);
    expect(
      c
        .log()
        .slice(before)
        .map(({ type }) => type),
    ).not.toContain('renamed');
    expect(c.log().filter(({ type }) => type === 'renamed')).toHaveLength(1);
    expect(JSON.stringify(model.calls.at(-1))).not.toContain('Mend the parser');
    expect(namer.calls).toMatchObject([{ tools: [], maxOutputTokens: 1_024 }]);
    expect(JSON.stringify(namer.calls[0]?.messages)).toMatch(/drops the last line.*The bug is mended/);
  });

  test('is made from at most 3,000 characters of the conversation', async () => {
    const { agent, namer } = titled(['r'.repeat(50_000)], ['Long']);
    await (await agent.open('c')).send('m'.repeat(50_000)).result;
    await isOver(namer);
    expect(JSON.stringify(namer.calls[0]?.messages).length).toBeLessThan(3_200);
  });

  test('is kept if a person has given it before, also in an earlier process and while the model answers', async () => {
    const first = titled(['ok', 'ok'], ['Of the model', 'Of the model']);
    const c = await first.agent.open('c');
    await c.rename('Mine');
    await c.send('hi').result;
    await c.close();
    const again = await first.agent.open('c');
    await again.send('hi').result;
    expect(first.namer.calls).toHaveLength(0);
    expect(await first.titleOf('c')).toBe('Mine');

    let rename: () => unknown = () => undefined;
    const second = titled(['ok'], [during(() => rename(), 'Of the model')]);
    const d = await second.agent.open('d');
    rename = () => d.rename('Mine');
    await d.send('hi').result;
    await isOver(second.namer);
    expect(await second.titleOf('d')).toBe('Mine');
  });

  test('is put back if the rename of a person is stored just before that of the model', async () => {
    const { agent, namer, titleOf } = titled(['ok'], ['Of the model']);
    const c = await agent.open('c');
    const rename = c.rename.bind(c);
    let isFirst = true;
    c.rename = (title) => {
      if (isFirst) void rename('Mine');
      isFirst = false;
      return rename(title);
    };
    await c.send('hi').result;
    await isOver(namer);
    await expect.poll(() => titleOf('c')).toBe('Mine');
  });

  test.each<[what: string, answer: Reply, title: string]>([
    ['quoted', '"Mend the **parser**."', 'Mend the **parser'],
    ['with escape codes', `${ESC}]0;owned\u0007${ESC}[2JMend\u009b31m it`, ']0;owned [2JMend 31m it'],
    ['with direction marks and unseen characters', 'Me\u202end\u200b \u2066it\u{e0041}', 'Me nd it'],
    ['with a lone surrogate', 'Mend \ud800 it', 'Mend it'],
    ['too long', 'word '.repeat(30), `${'word '.repeat(12).slice(0, 59)}…`],
    ['surrounded by line breaks', '\n\nMend it\n', 'Mend it'],
    ['after reasoning', [{ type: 'reasoning-delta', text: 'a long thought' }, t('Mend it')], 'Mend it'],
  ])('an answer that is %s becomes one visible line of at most 60 characters', async (_, answer, title) => {
    const { agent, namer, titleOf } = titled(['ok'], [answer]);
    await (await agent.open('c')).send('hi').result;
    await isOver(namer);
    await expect.poll(() => titleOf('c')).toBe(title);
    expect(title.length).toBeLessThanOrEqual(60);
  });

  test.each<[what: string, answer: Reply]>([
    ['of 10,000 characters', 'x'.repeat(10_000)],
    ['of several lines', 'Mend it\n> typed by a person'],
    ['with a line separator', 'Mend it\u2028now'],
    ['that is empty', ''],
    ['of blanks and marks', ' \u200b"**" '],
    ['that is a tool call', [t('Mend it'), call('c1', 'Bash', { command: 'true' })]],
    ['that is cut', [t('Mend'), finish('length')]],
    ['that was refused', [{ type: 'refusal' }, t('No')]],
    ['that fails', new Error('the server is gone')],
    ['without an end', deaf(t('Mend it'))],
  ])('the first words stay after an answer %s', async (_, answer) => {
    const { agent, namer, titleOf } = titled(['ok'], [answer], 50);
    const c = await agent.open('c');
    await c.send('hi there').result;
    const entries = c.log().length;
    await isOver(namer);
    await setImmediate();
    expect(c.log()).toHaveLength(entries);
    expect(await titleOf('c')).toBe('hi there');
  });
});

describe('the end', () => {
  test('a session that closes aborts the call for its title and does not wait for it', async () => {
    const { agent, namer, titleOf } = titled(['ok'], [deaf()]);
    const c = await agent.open('c');
    await c.send('hi').result;
    await expect.poll(() => namer.calls.length).toBe(1);
    await c.close();
    await isOver(namer);
    expect(await titleOf('c')).toBe('hi');
  });

  test('the end of the program aborts the calls, and no further one begins', async () => {
    const { agent, namer, end } = titled(['ok', 'ok'], [deaf(), 'Late']);
    const c = await agent.open('c');
    await c.send('hi').result;
    await expect.poll(() => namer.calls.length).toBe(1);
    end();
    await isOver(namer);
    const d = await agent.open('d');
    await d.send('hi').result;
    await setImmediate();
    expect(namer.calls).toHaveLength(1);
  });

  test('a model that cannot be made leaves the first words', async () => {
    const agent = createAgent({ model: scripted(['ok']), store: memoryStore() });
    onTestFinished(() => agent.close());
    let asked = 0;
    titleSessions(agent, {
      model: (): Promise<Model> => {
        asked += 1;
        return Promise.reject(new Error('no key'));
      },
    });
    const c = await agent.open('c');
    await c.send('hi').result;
    await expect.poll(() => asked).toBe(1);
    expect(c.log().map(({ type }) => type)).not.toContain('renamed');
  });
});
