/**
 * A session that is swapped, opened again with another agent, or left: the remains of the previous session. Invariant: no part of a
 * session that was left is shown, listed, followed or held any more.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { CodingAgent } from '../../../src/cli/codingAgent.ts';
import { rowsOf, rowText } from '../../../src/cli/interactive/textRows.ts';
import { createAgent, ModelError } from '../../../src/index.ts';
import { jsonlStore } from '../../../src/stores/jsonl/jsonlStore.ts';
import type { BackgroundCommand } from '../../../src/tools/coding/commands/backgroundCommands.ts';
import { deaf, scripted, t } from '../../support/scriptedReplies.ts';
import { agentOf, deploys, talk, talkWith } from './talkBench.ts';

afterEach(() => void vi.restoreAllMocks());

/** Commands in the background that the test ends. */
function background(running: readonly BackgroundCommand[] = []) {
  const watchers = new Set<(command: BackgroundCommand) => void>();
  const watch = (watcher: (command: BackgroundCommand) => void) => {
    watchers.add(watcher);
    return () => void watchers.delete(watcher);
  };
  return { watchers, commands: { watch, running: () => running } };
}
const command = (id: string, more: object = {}) => ({ id, command: `run ${id}`, ...more }) as BackgroundCommand;
const withBackground = async (on: Awaited<ReturnType<typeof agentOf>>, commands: object) => {
  Object.assign(on.made, { background: commands });
  return on;
};
const footOf = (source: Awaited<ReturnType<typeof talk>>['source']): string[] =>
  source.view().lines.flatMap((line) => rowsOf(line, 200).map((row) => rowText(row).trimEnd()));

describe('a session that is left for another one', () => {
  test('is released, and its lines, its messages and its commands in the background are shown no more', async () => {
    const { watchers, commands } = background();
    const on = await withBackground(await agentOf(['hello', 'again']), commands);
    const { session, source, lines, shows, isIdle, made } = await talkWith(on, undefined);
    source.submit('one', false);
    await shows('  hello');
    await isIdle();
    const first = session.id ?? '';
    for (let time = 0; time < 3; time += 1) {
      const before = session.id;
      source.submit('/new', false);
      await expect.poll(() => session.id).not.toBe(before);
    }
    expect(watchers.size).toBe(1);
    const held = await made.agent.open(first);
    lines.length = 0;
    await held.send('elsewhere').result;
    for (const watcher of watchers) watcher(command('bash_1', { end: { kind: 'exited', code: 0 } }));
    expect(lines).toEqual(['· bash_1 run bash_1: exit code 0']);
    session.close();
    expect(watchers.size).toBe(0);
  });

  test('stays open if the other one works in another directory, which is released', async () => {
    const { made, session, source, shows, lines } = await talk('hello');
    const elsewhere = join(made.cwd, 'elsewhere');
    await mkdir(elsewhere);
    const store = jsonlStore(join(made.cwd, 'sessions'));
    const other = createAgent({ model: scripted(['hi', 'again']), store, cwd: elsewhere });
    const conversation = await other.open('other');
    await conversation.send('there').result;
    await conversation.close();
    const { id } = session;
    for (const _ of [1, 2]) {
      lines.length = 0;
      source.submit('/resume other', false);
      await shows('--cwd');
      expect(session.id).toBe(id);
      await (await other.open('other')).close();
    }
    await other.close();
    source.submit('one', false);
    await shows('  hello');
  });

  test('is not opened again in place of itself', async () => {
    const { session, source, lines, shows, isIdle } = await talk('hello');
    source.submit('one', false);
    await shows('  hello');
    await isIdle();
    lines.length = 0;
    source.submit(`/resume ${session.id}`, false);
    await shows('this is that session');
    expect(lines).toEqual(['this is that session']);
  });

  test('is empty until it has a message', async () => {
    const { session, source, shows, isIdle } = await talk('hello');
    expect(session.isEmpty).toBe(true);
    source.submit('one', false);
    await shows('  hello');
    await isIdle();
    expect(session.isEmpty).toBe(false);
  });
});

describe('a session that is opened again with another agent', () => {
  test('keeps its mode, the rules of the person and the change, and the earlier agent ends', async () => {
    const on = await agentOf([deploys('one'), 'done', 'more']);
    const { source, shows, asks, isIdle, changes, made, lines } = await talkWith(on, undefined);
    vi.spyOn(made.permissions, 'modeOf').mockReturnValue('acceptEdits');
    const close = vi.spyOn(made.agent, 'close');
    source.submit('go', false);
    await asks('run it?');
    source.submit('a', false);
    await shows('  done');
    await isIdle();
    const [rule = ''] = /from now on: (.*)/.exec(lines.join('\n'))?.slice(1) ?? [];
    source.submit('/permissions allow bash(make *)', false);
    await expect.poll(() => changes.length).toBe(1);
    await shows('allow bash(make *): until the program ends');
    source.submit('/mode plan', false);
    await expect.poll(() => changes.length).toBe(2);
    await expect.poll(() => lines.filter((line) => line.startsWith('runchart ·')).length).toBe(3);
    expect(changes).toEqual([
      { permissionMode: 'acceptEdits', allow: ['bash(make *)', rule] },
      { permissionMode: 'plan', allow: [rule] },
    ]);
    expect(close).toHaveBeenCalledTimes(2);
    source.submit(`/permissions remove ${rule}`, false);
    await shows(`removed: ${rule}`);
    expect(changes[2]).toEqual({ permissionMode: 'acceptEdits', removed: [rule], allow: [] });
  });

  test('is not, and the new agent ends, where a message arrives while that is made', async () => {
    const on = await agentOf([deaf(t('working'))]);
    const { source, shows, made, lines } = await talkWith(on, undefined);
    let go = (): void => {};
    const closeOfNew = vi.fn(async () => undefined);
    const remade = new Promise<CodingAgent>((resolve) => {
      go = () => resolve({ ...made, close: closeOfNew });
    });
    Object.assign(made, { remade: () => remade });
    source.submit('/model other', false);
    await new Promise((resolve) => setImmediate(resolve));
    source.submit('hello', false);
    await shows('> hello');
    go();
    await shows('a request is under way');
    await expect.poll(() => closeOfNew.mock.calls.length).toBe(1);
    expect(lines.filter((line) => line.startsWith('runchart ·'))).toHaveLength(1);
    source.escape();
    await shows('■ interrupted');
  });

  test('is opened with the next message if it cannot be opened at once, and nothing typed is dropped', async () => {
    const on = await agentOf(['hello', 'again']);
    const { session, source, shows, isIdle, lines, made, model } = await talkWith(on, undefined);
    const { id } = session;
    let refusals = 2;
    const open = made.agent.open.bind(made.agent);
    const agent = Object.assign(Object.create(made.agent), {
      open: (name: string) => {
        refusals -= 1;
        return refusals < 0 ? open(name) : Promise.reject(new Error('the disk is gone'));
      },
    });
    Object.assign(made, {
      remade: async () => ({ ...made, agent, close: async () => undefined }),
      close: async () => undefined,
    });
    source.submit('/model other', false);
    await shows('the disk is gone');
    lines.length = 0;
    source.submit('one', false);
    await shows('the disk is gone');
    source.submit('two', false);
    source.submit('/cost', false);
    await shows('  hello');
    await isIdle();
    expect(session.id).toBe(id);
    expect(lines.filter((line) => line.startsWith('runchart ·'))).toHaveLength(1);
    expect(model.calls).toHaveLength(1);
    await shows('no model was called yet');
  });

  test('lists files and servers that do not count if its servers were started anew, and not after another change', async () => {
    const on = await agentOf([]);
    const { source, shows, lines, made } = await talkWith(on, undefined);
    const { remade } = made;
    const problems = ['.mcp.json is no JSON'];
    Object.assign(made, {
      remade: async (...args: Parameters<typeof remade>) => {
        const next = await remade(...args);
        return { ...next, remade: made.remade, equipment: { ...next.equipment, problems } };
      },
    });
    source.submit('/model other', false);
    await shows('runchart · other');
    source.submit('/mode', false);
    await shows('/mode <name> changes it');
    expect(lines).not.toContain('.mcp.json is no JSON');
    source.submit('/mcp restart', false);
    await shows('.mcp.json is no JSON');
  });

  test('names the commands that end with it, and does not list them again as gone', async () => {
    const { commands } = background([command('bash_1'), command('bash_2')]);
    const on = await withBackground(await agentOf([]), commands);
    const { source, shows, lines } = await talkWith(on, undefined);
    source.submit('/model other', false);
    await shows('runchart · other');
    expect(lines.filter((line) => line.startsWith('! '))).toEqual(
      ['bash_1', 'bash_2'].map(
        (id) => `! ${id} run ${id}: it ends now, because the session is closed and opened again`,
      ),
    );
  });
});

describe('while a request is under way', () => {
  test('its time goes on from its beginning, through all its entries, and the next one begins anew', async () => {
    let now = 1_000_000;
    vi.spyOn(Date, 'now').mockImplementation(() => now);
    const { source, shows, isIdle } = await talk(deaf(t('first')), deaf(t('second')));
    for (const word of ['first', 'second']) {
      source.submit('go', false);
      await expect.poll(() => footOf(source).join('\n')).toContain(word);
      now += 3_000;
      expect(footOf(source).at(-1)).toContain(' working 3.0 s · Esc stops');
      source.submit('also', false);
      await expect.poll(() => footOf(source).join('\n')).toContain('+ steer: also');
      now += 2_000;
      expect(footOf(source).at(-1)).toContain(' working 5.0 s · ');
      source.escape();
      await shows('■ interrupted');
      await isIdle();
      expect(footOf(source)).toEqual([]);
    }
  });

  test('the messages that wait come back into the line before the unfinished one, and are not sent later', async () => {
    const { source, terminal, shows, isIdle, model } = await talk(deaf(t('working')), 'done');
    source.submit('go', false);
    await expect.poll(() => footOf(source).join('\n')).toContain('working');
    source.submit('one', true);
    source.submit('two', true);
    await expect.poll(() => footOf(source).filter((line) => line.startsWith('+ later'))).toHaveLength(2);
    terminal.text = 'unfinished';
    source.escape();
    await shows('■ interrupted');
    await isIdle();
    await expect.poll(() => terminal.text).toBe('one\ntwo\nunfinished');
    source.submit('next', false);
    await shows('  done');
    await isIdle();
    expect(model.calls).toHaveLength(2);
    expect(JSON.stringify(model.calls.at(-1)?.messages)).not.toMatch(/"one"|"two"/);
  });

  test('no command changes the session, also not while it stops', async () => {
    const { source, shows, lines, changes, session } = await talk(deaf(t('working')));
    source.submit('go', false);
    await expect.poll(() => footOf(source).join('\n')).toContain('working');
    const { id } = session;
    const refusals = (): number => lines.filter((line) => line.startsWith('a request is under way')).length;
    for (const [index, line] of ['/new', '/model other', '/mode plan', '/mcp restart', '/fork'].entries()) {
      source.submit(line, false);
      await expect.poll(refusals).toBe(index + 1);
    }
    expect([changes, session.id]).toEqual([[], id]);
    source.escape();
    await shows('■ interrupted');
  });
});

test('the menu of commands is open while a line is typed, and closed while a question is asked', async () => {
  const { source, terminal, asks } = await talk(deploys('one'), 'done');
  terminal.text = '/mod';
  expect(footOf(source).map((line) => line.split('  ')[0])).toEqual(
    ['› /model [name]', '  /mode [name]'].map((each) => each.split('  ')[0]),
  );
  expect([source.moveInMenu('/mod', 1), source.completed('/mod')]).toEqual([true, '/mode ']);
  terminal.text = '';
  source.submit('go', false);
  await asks('run it?');
  terminal.text = '/mod';
  expect(footOf(source)).toEqual([]);
  expect(source.moveInMenu('/mod', 1)).toBe(false);
  source.escape();
});

test('of equal lines that follow one another one is kept, and an answer to a question is none of them', async () => {
  const { source, asks, isIdle, shows } = await talk('one', 'two', deploys('x'), 'done');
  const says = async (line: string): Promise<void> => {
    source.submit(line, false);
    await isIdle();
  };
  for (const line of ['/cost', '/cost', ' ', '/help', '/cost']) await says(line);
  source.submit('go', false);
  await shows('  one');
  await isIdle();
  source.submit('go', false);
  await shows('  two');
  await isIdle();
  source.submit('deploy', false);
  await asks('run it?');
  source.submit('y', false);
  await shows('  done');
  expect(source.history()).toEqual(['/cost', '/help', '/cost', 'go', 'deploy']);
});

/** Not repeated. */
const REFUSED = new ModelError({ code: 'bad-request', message: 'no such model' });

test.each([
  ['that came while the run ended', 'active'],
  ['after it', 'waiting'],
])('the failure of a request that continued with a decision %s is shown once', async (_, status) => {
  const { made, source, asks, isIdle, shows, lines } = await talk(deploys('x'), REFUSED);
  source.submit('go', false);
  await asks('run it?');
  if (status === 'waiting') await expect.poll(async () => (await made.agent.list())[0]?.status).toBe(status);
  source.submit('y', false);
  await shows('\nerror (bad-request): no such model');
  await isIdle();
  await new Promise((resolve) => setImmediate(resolve));
  expect(lines.filter((line) => line.startsWith('error ('))).toHaveLength(1);
});

test('the failure of a request that was steered is shown once', async () => {
  let fail = (): void => {};
  const failing = new Promise<void>((_, reject) => {
    fail = () => reject(REFUSED);
  });
  const { source, shows, isIdle, lines } = await talk(async function* () {
    yield t('working');
    await failing;
  });
  source.submit('go', false);
  await expect.poll(() => footOf(source).join('\n')).toContain('working');
  source.submit('also', false);
  await expect.poll(() => footOf(source).join('\n')).toContain('+ steer: also');
  fail();
  await shows('\nerror (bad-request): no such model');
  await isIdle();
  await new Promise((resolve) => setImmediate(resolve));
  expect(lines.filter((line) => line.startsWith('error ('))).toHaveLength(1);
});

test('a Ctrl-C that arrives as a signal clears the line first, and stops the request if that is empty', async () => {
  const { session, terminal, source, shows } = await talk(deaf(t('working')));
  source.submit('go', false);
  await expect.poll(() => footOf(source).join('\n')).toContain('working');
  terminal.text = 'half a thought';
  session.signalled();
  await expect.poll(() => terminal.text).toBe('');
  expect(footOf(source).at(-1)).toContain(' working ');
  session.signalled();
  await shows('■ interrupted');
});

test('a Ctrl-C that arrives as a signal belongs to the editor while one is open', async () => {
  const { session, terminal, source, shows } = await talk(deaf(t('working')));
  source.submit('go', false);
  await expect.poll(() => footOf(source).join('\n')).toContain('working');
  Object.assign(terminal, { isHandedOver: true });
  session.signalled();
  session.signalled();
  expect(footOf(source).at(-1)).toContain('working');
  Object.assign(terminal, { isHandedOver: false });
  session.signalled();
  await shows('■ interrupted');
});
