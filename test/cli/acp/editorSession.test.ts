/** Sessions of an editor: the SDK's own client over byte streams, real rules, tools and store, a scripted model. */
import { existsSync } from 'node:fs';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import { ModelError } from '../../../src/index.ts';
import { call, finish, type Reply, t } from '../../support/scriptedReplies.ts';
import { begun, choose, textIn, updatesOf } from './acpClient.ts';

const deploys = (to: string, id = 'c1'): Reply => [call(id, 'Deploy', { to })];

describe('a prompt', () => {
  test('streams thoughts and text once, and ends with end_turn after the last update', async () => {
    const reply: Reply = [{ type: 'reasoning-delta', text: 'Hm.' }, t('Hel'), t('lo.')];
    const { updates, prompt, model } = await begun([reply]);
    expect(await prompt('hi')).toEqual({ stopReason: 'end_turn' });
    expect(textIn(updates)).toBe('Hello.');
    expect(textIn(updates, 'agent_thought_chunk')).toBe('Hm.');
    expect(model.calls).toHaveLength(1);
  });

  test.each<[string, Reply[]]>([
    ['refusal', [[{ type: 'refusal' }, t('No.'), finish('stop')]]],
    ['max_tokens', Array<Reply>(12).fill([t('a'), finish('length')])],
    ['end_turn', ['done']],
  ])('ends with %s', async (stopReason, replies) => {
    const { prompt } = await begun(replies);
    expect(await prompt('hi')).toEqual({ stopReason });
  });

  test('a call is shown with its kind, title, place and status, and an edit with its diff', async () => {
    const { root, updates, prompt } = await begun(
      [
        [call('c1', 'Read', { file_path: 'a.txt' })],
        [call('c2', 'Edit', { file_path: 'a.txt', old_string: 'two', new_string: '2' })],
        'done',
      ],
      { answer: choose('once') },
    );
    await writeFile(join(root, 'a.txt'), 'one\ntwo\nthree\n');
    await prompt('edit it');
    const [asked, started, ended] = updatesOf(updates, 'c1');
    const path = join(root, 'a.txt');
    expect(asked).toMatchObject({ kind: 'read', title: 'Read a.txt', status: 'pending', locations: [{ path }] });
    expect(started).toMatchObject({ status: 'in_progress' });
    expect(ended).toMatchObject({ status: 'completed' });
    const last = updatesOf(updates, 'c2').at(-1);
    const diff = { type: 'diff', path, oldText: 'one\ntwo\nthree', newText: 'one\n2\nthree' };
    expect(last).toMatchObject({ status: 'completed', content: [diff] });
    expect(await readFile(path, 'utf8')).toBe('one\n2\nthree\n');
  });

  test('files, links, embedded text and images reach the model, and nothing outside of the directory is read', async () => {
    const { root, agent, sessionId, model } = await begun(['seen']);
    await mkdir(join(root, 'work'));
    await writeFile(join(root, 'work', 'in.txt'), 'inside\n');
    const editor = await begun(['seen'], { root });
    const cwd = join(root, 'work');
    const { sessionId: inner } = await editor.agent.request('session/new', { cwd, mcpServers: [] });
    await writeFile(join(root, 'out.txt'), 'OUTSIDE');
    await symlink(join(root, 'out.txt'), join(cwd, 'link.txt'));
    const uriOf = (path: string): string => pathToFileURL(path).href;
    const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
    await editor.agent.request('session/prompt', {
      sessionId: inner,
      prompt: [
        { type: 'text', text: 'Look at ' },
        { type: 'resource_link', name: 'in.txt', uri: uriOf(join(cwd, 'in.txt')) },
        { type: 'resource_link', name: 'out.txt', uri: uriOf(join(root, 'out.txt')) },
        { type: 'resource_link', name: 'link.txt', uri: uriOf(join(cwd, 'link.txt')) },
        { type: 'resource', resource: { uri: uriOf(join(cwd, 'gone.ts')), text: 'unsaved text' } },
        { type: 'image', mimeType: 'image/png', data: png },
      ],
    });
    const [request] = editor.model.calls;
    const sent = JSON.stringify(request?.messages);
    expect(sent).toContain('Look at @in.txt');
    expect(sent).toContain('inside');
    expect(sent).toContain('unsaved text');
    expect(sent).not.toContain('OUTSIDE');
    expect(request?.messages.at(-1)?.content.some(({ type }) => type === 'image')).toBe(true);
    expect(model.calls).toHaveLength(0);
    const audio = { type: 'audio', mimeType: 'audio/wav', data: '' } as const;
    const refused = agent.request('session/prompt', { sessionId, prompt: [audio] });
    await expect(refused).rejects.toMatchObject({ code: -32602 });
    const empty = agent.request('session/prompt', { sessionId, prompt: [] });
    await expect(empty).rejects.toMatchObject({ code: -32602 });
  });

  test('a plan of TodoWrite is a plan of the editor', async () => {
    const { SessionUpdates } = await import('../../../src/cli/acp/sessionUpdates.ts');
    const fold = new SessionUpdates({ cwd: '/w', contextWindow: undefined, notices: false });
    const base = { seq: 1, at: 0, conversationId: 'x', runId: 'r' };
    const todos = [
      { content: 'read', status: 'completed' },
      { content: 'write', status: 'odd' },
    ];
    fold.entry({
      ...base,
      type: 'agent-output',
      item: { type: 'tool-call', callId: 'c1', name: 'TodoWrite', args: { todos } },
    });
    const updates = fold.entry({ ...base, type: 'tool-result', callId: 'c1', outcome: 'succeeded', content: [] });
    const entries = [
      { content: 'read', status: 'completed', priority: 'medium' },
      { content: 'write', status: 'pending', priority: 'medium' },
    ];
    expect(updates).toContainEqual({ sessionUpdate: 'plan', entries });
  });

  test('the context and the cost are updated after each reply that has them', async () => {
    const window = { contextWindow: 200_000, prices: { input: 1_000_000, output: 0 } };
    const { updates, prompt } = await begun([[t('a'), finish('stop', 2)]], { window });
    await prompt('hi');
    const usage = { sessionUpdate: 'usage_update', used: 4, size: 200_000, cost: { amount: 2, currency: 'USD' } };
    expect(updates).toContainEqual(usage);
  });

  test('a failed model is an error with its code, and the session goes on', async () => {
    const { prompt } = await begun([new ModelError({ code: 'bad-request', message: 'no such thing' }), 'fine']);
    await expect(prompt('one')).rejects.toMatchObject({
      code: -32603,
      message: expect.stringContaining('no such thing'),
    });
    expect(await prompt('two')).toEqual({ stopReason: 'end_turn' });
  });
});

describe('permission', () => {
  test('an approved call runs once, and the question names call and options', async () => {
    const { asked, prompt, ran, sessionId } = await begun([deploys('one'), 'done'], { answer: choose('once') });
    await prompt('deploy');
    expect(ran).toEqual(['one']);
    expect(asked).toHaveLength(1);
    expect(asked[0]).toMatchObject({
      sessionId,
      toolCall: { toolCallId: 'c1', title: 'Deploy', rawInput: { to: 'one' } },
    });
    expect(asked[0]?.options.map(({ kind }) => kind)).toEqual([
      'allow_once',
      'allow_always',
      'allow_always',
      'reject_once',
    ]);
  });

  test('"always" in the session asks once, "always" in the directory is kept for later programs', async () => {
    const replies = [deploys('one'), deploys('two', 'c2'), 'done'];
    const { asked, prompt, ran } = await begun(replies, { answer: choose('session') });
    await prompt('deploy');
    expect(ran).toEqual(['one', 'two']);
    expect(asked).toHaveLength(1);
    const kept = await begun([deploys('three'), 'done'], { answer: choose('kept') });
    await kept.prompt('deploy');
    expect(await readFile(join(kept.root, 'user', 'allowed.json'), 'utf8')).toContain('deploy');
  });

  test.each(['reject', 'made-up'])('the answer %s runs nothing, and the model receives that', async (optionId) => {
    const { prompt, ran, model, updates } = await begun([deploys('one'), 'as you wish'], { answer: choose(optionId) });
    expect(await prompt('deploy')).toEqual({ stopReason: 'end_turn' });
    expect(ran).toEqual([]);
    expect(model.calls).toHaveLength(2);
    expect(updatesOf(updates, 'c1').at(-1)).toMatchObject({ status: 'failed' });
  });

  test('an editor that cannot ask denies, and one that answers with cancelled ends the request', async () => {
    const fails = await begun([deploys('one'), 'well'], { answer: () => Promise.reject(new Error('no window')) });
    expect(await fails.prompt('deploy')).toEqual({ stopReason: 'end_turn' });
    expect(fails.ran).toEqual([]);
    const { prompt, ran } = await begun([deploys('one')], {
      answer: async () => ({ outcome: { outcome: 'cancelled' } }),
    });
    expect(await prompt('deploy')).toEqual({ stopReason: 'cancelled' });
    expect(ran).toEqual([]);
  });

  test('the question about an edit shows the whole change, and about a new file its content', async () => {
    const { root, asked, prompt } = await begun(
      [
        [call('c1', 'Read', { file_path: 'a.txt' })],
        [call('c2', 'Edit', { file_path: 'a.txt', old_string: 'one', new_string: '1' })],
        [call('c3', 'Write', { file_path: 'new/b.txt', content: 'new\n' })],
        'done',
      ],
      { answer: choose('once') },
    );
    await writeFile(join(root, 'a.txt'), 'one\n');
    await prompt('edit');
    const [edit, write] = asked.map(({ toolCall }) => toolCall.content);
    expect(edit).toEqual([{ type: 'diff', path: join(root, 'a.txt'), oldText: 'one\n', newText: '1\n' }]);
    expect(write).toEqual([{ type: 'diff', path: join(root, 'new/b.txt'), oldText: null, newText: 'new\n' }]);
    expect(existsSync(join(root, 'new/b.txt'))).toBe(true);
  });
});

describe('modes', () => {
  test('are the permission modes of the program, and hold from the next call on', async () => {
    const { agent, sessionId, modes, prompt, asked, ran, updates } = await begun([
      deploys('one'),
      'done',
      deploys('two', 'c2'),
      'no',
    ]);
    expect(modes?.currentModeId).toBe('default');
    expect(modes?.availableModes.map(({ id }) => id)).toEqual(['default', 'acceptEdits', 'plan', 'dontAsk', 'bypass']);
    await agent.request('session/set_mode', { sessionId, modeId: 'bypass' });
    await prompt('deploy');
    await agent.request('session/set_mode', { sessionId, modeId: 'plan' });
    await prompt('again');
    expect(ran).toEqual(['one']);
    expect(asked).toEqual([]);
    // The editor has chosen the modes itself.
    expect(updates.filter(({ sessionUpdate }) => sessionUpdate === 'current_mode_update')).toEqual([]);
    const unknown = agent.request('session/set_mode', { sessionId, modeId: 'root' });
    await expect(unknown).rejects.toMatchObject({ code: -32602 });
  });

  test('a plan is shown with its question, and its approval ends plan mode in the editor too', async () => {
    const planned: Reply = [call('p1', 'ExitPlanMode', { plan: '# Deploy twice' })];
    const replies = [planned, deploys('one'), 'done'];
    const { prompt, asked, updates, ran, modes } = await begun(replies, { answer: choose('once'), mode: 'plan' });
    expect(modes?.currentModeId).toBe('plan');
    await prompt('deploy');
    const text = { type: 'text', text: '# Deploy twice' };
    expect(asked[0]?.toolCall).toMatchObject({ kind: 'switch_mode', content: [{ type: 'content', content: text }] });
    expect(updates).toContainEqual({ sessionUpdate: 'current_mode_update', currentModeId: 'default' });
    expect(asked).toHaveLength(2);
    expect(ran).toEqual(['one']);
  });

  test('a mode that is chosen during a request holds for its next call', async () => {
    const first = await begun([deploys('one'), deploys('two', 'c2'), 'done'], {
      answer: async (asked) => {
        await first.agent.request('session/set_mode', { sessionId: asked.sessionId, modeId: 'bypass' });
        return choose('once')();
      },
    });
    await first.prompt('deploy');
    expect(first.ran).toEqual(['one', 'two']);
    expect(first.asked).toHaveLength(1);
  });
});
