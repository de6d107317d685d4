/** A conversation between a person and the agent, on a terminal that is a list of lines. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { describe, expect, onTestFinished, test } from 'vitest';
import { SimulatedClock } from 'xstate';
import { LineTerminal } from '../../../src/cli/interactive/conversationTerminal.ts';
import { InteractiveSession } from '../../../src/cli/interactive/interactiveSession.ts';
import { QUESTION_MS } from '../../../src/cli/interactive/prompt.machine.ts';
import { rowsOf, rowText } from '../../../src/cli/interactive/textRows.ts';
import { permissions } from '../../../src/permissions/permissions.ts';
import { loadConfiguration } from '../../../src/session/configuration.ts';
import { call, deaf, type Reply, t } from '../../support/scriptedReplies.ts';
import { agentOf, deploys, keptOutput, ListTerminal, talk, talkWith } from './talkBench.ts';

test('text typed before the session is open is its first request', async () => {
  const { made, model } = await agentOf(['hello']);
  const lines: string[] = [];
  const session = new InteractiveSession(made, (source) => {
    const terminal = new ListTerminal(source);
    Object.assign(terminal, { lines });
    return terminal;
  });
  onTestFinished(() => session.close());
  const opened = session.open(undefined);
  session.submit('early', false);
  await opened;
  await expect.poll(() => lines.join('\n'), { interval: 5 }).toContain('■ completed');
  expect(lines).toContain('> early');
  expect(model.calls).toHaveLength(1);
});

describe('approvals', () => {
  test('a yes runs the call, "always" runs the next ones without approval, and the unfinished line is restored', async () => {
    const { terminal, source, lines, ran, shows, asks, isIdle } = await talk(
      deploys('one'),
      deploys('two', 'c2'),
      deploys('three', 'c3'),
      'done',
    );
    terminal.text = 'half a thou';
    source.submit('go', false);
    await asks('run it?');
    expect(terminal.text).toBe('');
    source.submit('y', false);
    await shows('deployed to one');
    await asks('run it?');
    source.submit('a', false);
    await shows('· allowed from now on: deploy');
    await shows('  done');
    await isIdle();
    expect(ran).toEqual(['one', 'two', 'three']);
    expect(terminal.text).toBe('half a thou');
    expect(lines.filter((line) => line.includes('asks to run'))).toHaveLength(2);
    expect(lines.at(-1)).toMatch(/^■ completed · 4 turns/);
  });

  test('"keep" allows it in later programs of this directory too, in a file of the user', async () => {
    const { made, source, lines, shows, asks, isIdle, ran } = await talk(deploys('one'), deploys('two', 'c2'), 'done');
    source.submit('go', false);
    await asks('[k]eep');
    source.submit('k', false);
    await shows(`· kept for this directory in ${join(made.cwd, 'user', 'allowed.json')}`);
    await isIdle();
    expect(ran).toEqual(['one', 'two']);
    expect(lines.filter((line) => line.includes('asks to run'))).toHaveLength(1);
    const { permissions: kept } = await loadConfiguration({ cwd: made.cwd, userDirectory: join(made.cwd, 'user') });
    expect(await permissions(kept).explain('Deploy', { to: 'three' }, made.cwd)).toMatchObject({ outcome: 'allow' });
  });

  test('a no with its reason reaches the model, and edited arguments run', async () => {
    const { source, lines, ran, model, asks, isIdle, terminal, shows } = await talk(
      deploys('prod'),
      deploys('prod', 'c2'),
      'ok',
    );
    source.submit('go', false);
    await asks('run it?');
    source.submit('n, not on a Friday', false);
    await shows('(failed, denied)');
    expect(JSON.stringify(model.calls.at(-1)?.messages.at(-1))).toContain('not on a Friday');
    await asks('run it?');
    source.submit('e', false);
    expect(terminal.text).toBe('{"to":"prod"}');
    source.submit('{"to":"test"}', false);
    await isIdle();
    expect(ran).toEqual(['test']);
    expect(lines).toContain('· Deploy: approved with other arguments');
  });

  test('Escape at a question ends the request: the call is cancelled and nothing runs', async () => {
    const { source, lines, ran, asks, isIdle } = await talk(deploys('prod'));
    source.submit('go', false);
    await asks('run it?');
    source.escape();
    await isIdle();
    expect(ran).toEqual([]);
    expect(lines.at(-1)).toMatch(/^■ interrupted \(cancelled\)/);
  });
});

describe('a decision that cannot be taken', () => {
  const refuse = () => Promise.reject(new Error('the disk is full'));
  const FAILING = ['the rules are not remembered', 'the rules are not kept', 'the decision is refused'] as const;
  const ANSWERS = FAILING.flatMap((what, at) =>
    ['k', 'a', 'y', 'n, not now'].slice(0, [2, 1, 4][at]).map((answer) => [what, answer] as const),
  );
  test.each(ANSWERS)(
    'if %s after the answer "%s", the person is asked again, as often as that happens',
    async (what, answer) => {
      const on = await agentOf([deploys('prod'), 'done']);
      let refusals = 0;
      const twice =
        <A extends unknown[], R>(act: (...args: A) => Promise<R>) =>
        (...args: A): Promise<R> => {
          refusals += 1;
          return refusals > 2 ? act(...args) : refuse();
        };
      const { made } = on;
      const [first, second] = FAILING;
      if (what === first) made.permissions.remember = twice(made.permissions.remember.bind(made.permissions));
      else if (what === second) Object.assign(made, { keep: twice(made.keep) });
      else {
        const { agent } = made;
        const open: typeof agent.open = async (...args) => {
          const conversation = await agent.open(...args);
          conversation.decide = twice(conversation.decide.bind(conversation));
          return conversation;
        };
        Object.assign(made, { agent: Object.assign(Object.create(agent), { open }) });
      }
      const { source, lines, ran, asks, isIdle } = await talkWith(on, undefined);
      source.submit('go', false);
      for (let time = 1; time <= 2; time += 1) {
        await asks('run it?');
        source.submit(answer, false);
        await expect.poll(() => lines.filter((line) => line.includes('the disk is full')).length).toBe(time);
      }
      await asks('run it?');
      expect(ran).toEqual([]);
      source.submit('y', false);
      await isIdle();
      expect(ran).toEqual(['prod']);
    },
  );
});

describe('a session that waits', () => {
  test('a session that is opened after an undo shows the request that counts, and so does its fork', async () => {
    const first = await talk('first done', 'second done');
    for (const words of ['first', 'second']) {
      first.source.submit(words, false);
      await first.shows(`${words} done`);
      await first.isIdle();
    }
    first.source.submit('/undo conversation', false);
    await first.shows('the conversation continues before that request');
    first.lines.length = 0;
    first.source.submit('/fork', false);
    await first.shows('first done');
    expect(first.lines.join('\n')).not.toContain('second');
  });

  test('it asks as soon as it is opened again, and continues with the decision', async () => {
    const first = await talk(deploys('prod'));
    first.source.submit('go', false);
    await first.asks('run it?');
    // The question appears a moment before the run has settled; the rest is interrupted.
    await expect.poll(async () => (await first.made.agent.list())[0]?.status, { interval: 5 }).toBe('waiting');
    first.session.close();
    await first.made.agent.close();
    const again = await talkWith(await agentOf(['done'], first.made.cwd), first.session.id);
    await again.asks('run it?');
    expect(again.lines.filter((line) => line.startsWith('>') || line.includes('asks to run'))).toEqual([
      '> go',
      '┃ Deploy asks to run (mode default)',
    ]);
    again.source.submit('y', false);
    await again.isIdle();
    expect(again.lines).toContain('  done');
    expect(again.ran).toEqual(['prod']);
  });

  test('if it is opened in place of another one that waits, it asks too, though their calls have one id', async () => {
    const ids: string[] = [];
    let cwd: string | undefined;
    for (const to of ['one', 'two']) {
      const on = await talkWith(await agentOf([deploys(to)], cwd), undefined);
      on.source.submit('go', false);
      await on.asks('run it?');
      await expect.poll(async () => (await on.made.agent.list())[0]?.status, { interval: 5 }).toBe('waiting');
      on.session.close();
      await on.made.agent.close();
      ids.push(on.session.id ?? '');
      cwd = on.made.cwd;
    }
    const again = await talkWith(await agentOf(['done'], cwd), ids[0]);
    await again.asks('run it?');
    for (const [id, to] of [
      [ids[1], 'two'],
      [ids[0], 'one'],
      [ids[1], 'two'],
    ]) {
      again.lines.length = 0;
      await again.session.open(id);
      expect(again.lines.filter((line) => line.includes('to: '))).toEqual([`┃ to: ${to}`]);
      await again.asks('run it?');
    }
    again.source.submit('y', false);
    await again.isIdle();
    expect(again.ran).toEqual(['two']);
  });
});

describe('during a request', () => {
  test('CYC-3 Enter steers it and Alt+Enter queues; Escape stops it, and queued text returns to the line', async () => {
    const { terminal, source, lines, isIdle, shows, model } = await talk(deaf(t('one moment\n')), 'again');
    source.submit('go', false);
    await shows('  one moment');
    source.submit('rather this', false);
    source.submit('and then that', true);
    await expect.poll(() => source.view().lines.length).toBe(3);
    expect(source.view().lines.map((line) => rowText(rowsOf(line, 99)[0] ?? { spans: [], width: 0 }))).toEqual([
      '+ steer: rather this',
      '+ later: and then that',
      expect.stringContaining('working'),
    ]);
    terminal.text = 'typing';
    source.escape();
    await isIdle();
    await expect.poll(() => terminal.text).toBe('rather this\nand then that\ntyping');
    await expect.poll(() => source.view().lines).toEqual([]);
    source.submit(terminal.text, false);
    await shows('  again');
    expect(lines.filter((line) => line.startsWith('>'))).toEqual(['> go', '> rather this']);
    expect(model.calls).toHaveLength(2);
    expect(source.history()).toEqual(['go', 'rather this', 'and then that', 'rather this\nand then that\ntyping']);
  });

  test('a queued message is the next request after this one has ended', async () => {
    let go = (): void => {};
    const held = new Promise<void>((resolve) => {
      go = resolve;
    });
    const slow: Reply = async function* () {
      yield t('first\n');
      await held;
      yield { type: 'finish', reason: 'stop' };
    };
    const { source, lines, shows, isIdle } = await talk(slow, 'second');
    source.submit('one', false);
    await shows('  first');
    source.submit('/later two', false);
    go();
    await shows('  second');
    await isIdle();
    expect(lines.filter((line) => line.startsWith('>'))).toEqual(['> one', '> two']);
  });
});

describe('sessions', () => {
  test('/new starts one, and /resume lists the others and returns to one, with its last request and its lines', async () => {
    const { session, source, lines, shows, isIdle, model } = await talk('hello', 'again');
    const first = session.id ?? '';
    source.submit('one', false);
    await shows('  hello');
    await isIdle();
    source.submit('/new', false);
    await expect.poll(() => session.id).not.toBe(first);
    source.submit('/resume', false);
    await shows('  one  1 turn · cost unknown');
    source.submit('/resume nowhere', false);
    await shows('there is no session nowhere');
    lines.length = 0;
    source.submit('/resume ON', false);
    await shows('  one  1 turn · cost unknown');
    expect(lines[0]).toMatch(/^ 1 +\d+ s {2}one {2}1 turn · cost unknown$/);
    lines.length = 0;
    source.submit('1', false);
    await expect.poll(() => session.id).toBe(first);
    await shows('■ completed');
    expect(lines).toEqual([expect.stringContaining(first), '> one', '  hello', expect.stringMatching(/^■ completed/)]);
    source.submit('two', false);
    await shows('  again');
    expect(model.calls.at(-1)?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
    expect(source.history().filter((line) => !line.startsWith('/'))).toContain('one');
  });

  test('commands have answers, unknown ones list similar names, and a failing model is reported', async () => {
    const { source, shows, session } = await talk(new Error('no such model'));
    for (const line of ['/help', '/cost', '/context', '/hlep', '/go']) source.submit(line, false);
    await shows('Alt+Enter');
    await shows('no model was called yet');
    await shows('did you mean /help?');
    await shows('nothing waits and nothing was interrupted');
    source.submit('go', false);
    await shows('no such model');
    source.submit('/exit', false);
    expect(await session.finished).toBe('done');
  });
});

test('/rename gives the session the title of its line, explains its use, and refuses a title that the lists cannot show', async () => {
  const { made, session, source, shows } = await talk('hello');
  source.submit('/rename', false);
  await shows('/rename takes the title');
  source.submit(`/rename ${'long '.repeat(200)}`, false);
  await shows('the title must be');
  source.submit('/rename  the parser \u001b[31mtests ', false);
  await shows('the session is called the parser');
  expect(await made.agent.list()).toMatchObject([{ id: session.id, title: 'the parser \u001b[31mtests' }]);
});

test('a session continues with another model, shows its rules, and is written as a file that replaces none', async () => {
  const { made, session, source, lines, shows, isIdle, model } = await talk('first', 'second');
  source.submit('one', false);
  await shows('  first');
  await isIdle();
  for (const line of ['/model', '/mode', '/permissions', '/diff', '/model none']) source.submit(line, false);
  await shows('no such model');
  expect(lines).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^scripted · window unknown · prices unknown/),
      '[default] acceptEdits plan dontAsk bypass · /mode <name> changes it',
      'allow  bash(ls *)  user, not trusted',
      'no file was changed in this session',
    ]),
  );
  const { id } = session;
  lines.length = 0;
  source.submit('/model other', false);
  await shows(`runchart · other · mode default · session ${id}`);
  source.submit('two', false);
  await shows('  second');
  await isIdle();
  expect(lines.filter((line) => line.startsWith('> '))).toEqual(['> two']);
  expect(model.calls.at(-1)?.messages).toHaveLength(3);
  for (const name of ['talk.md', 'talk.json', 'talk.md']) source.submit(`/export ${name}`, false);
  await shows('EEXIST');
  expect(await readFile(join(made.cwd, 'talk.md'), 'utf8')).toContain(
    '## You\n\none\n\n## Agent\n\nfirst\n\n## You\n\ntwo',
  );
  expect(JSON.parse(await readFile(join(made.cwd, 'talk.json'), 'utf8'))[0].type).toBe('conversation');
  await session.closeAgent();
});

test('! runs a command of the person and adds its output to the next message, and @ attaches files', async () => {
  const { made, source, lines, shows, isIdle, model } = await talk('first', 'second', 'third');
  await writeFile(join(made.cwd, 'a.txt'), 'alpha\n');
  source.submit('!echo here; exit 3', false);
  await shows('! echo here; exit 3  exit code 3');
  source.submit('look at @a.txt and @nowhere and @../b', false);
  await shows('  first');
  await isIdle();
  expect(lines.slice(-6, -1)).toEqual([
    '  here',
    '> look at @a.txt and @nowhere and @../b',
    '  [attached a.txt, 1 line] …',
    '  [I ran echo here; exit 3: exit code 3] …',
    '  first',
  ]);
  const sent = JSON.stringify(model.calls[0]?.messages);
  expect(sent).toContain('[attached a.txt, 1 line]\\nalpha');
  expect(sent).toContain('exit code 3]\\nhere');
  source.submit('!sleep 60', false);
  await expect.poll(() => source.interrupt('') ?? lines.join('\n')).toContain('! sleep 60  ended by SIGKILL');
  source.submit('again', false);
  await shows('  second');
  expect(model.calls[1]?.messages).toHaveLength(3);
  await isIdle();
  source.submit('once more', false);
  await shows('  third');
  const outputsIn = (call: number): number => JSON.stringify(model.calls[call]?.messages).split('[I ran').length - 1;
  expect([0, 1, 2].map(outputsIn)).toEqual([1, 2, 2]);
  expect(source.history()).toContain('look at @a.txt and @nowhere and @../b');
});

test('an undelivered message that returns to the line keeps the output of the command before it', async () => {
  const { terminal, source, isIdle, shows, model } = await talk(deaf(t('one moment\n')), 'again');
  source.submit('go', false);
  await shows('  one moment');
  source.submit('!echo printed', false);
  await shows('! echo printed  exit code 0');
  source.submit('rather this', false);
  await expect.poll(() => source.view().lines.length).toBe(2);
  source.escape();
  await isIdle();
  await expect.poll(() => terminal.text).toBe('rather this');
  source.submit(terminal.text, false);
  await shows('  again');
  expect(JSON.stringify(model.calls[1]?.messages).split('[I ran echo printed')).toHaveLength(2);
});

test('/compact summarizes earlier messages before the next request, and reports if it cannot', async () => {
  const made = await agentOf(['one', 'two', 'In short.', 'three'], undefined, { contextWindow: 100_000 });
  const { source, shows, isIdle, model } = await talkWith(made, undefined);
  for (const [line, answer] of [
    ['first', 'one'],
    ['second', 'two'],
  ] as const) {
    source.submit(line, false);
    await shows(answer);
    await isIdle();
  }
  source.submit('/compact the names', false);
  await shows('summed up before the next request');
  source.submit('third', false);
  await shows('three');
  expect(model.calls[2]?.system).toMatch(/the names$/);
  expect(model.calls[3]?.messages).toHaveLength(3);
  const unknown = await talk();
  unknown.source.submit('/compact', false);
  await unknown.shows('how many tokens the model takes is not known');
});

describe('a terminal without cursor movement', () => {
  test('it receives whole lines: a question appears once, a line answers it, and no cursor moves', async () => {
    const { made, ran } = await agentOf([[t('I will.\n'), call('c1', 'Deploy', { to: 'prod' })], 'done']);
    const typed = new PassThrough();
    const { output, written } = keptOutput(60);
    const clock = new SimulatedClock();
    const session = new InteractiveSession(made, (source) => new LineTerminal(typed, output, source), clock);
    await session.open(undefined);
    await expect.poll(written).toMatch(/\n> $/);
    typed.write('go\n');
    await expect.poll(written).toMatch(/\n┃ run it\? \[y\]es, \[n\]o, \[e\]dit, \[a\]lways, \[k\]eep: $/);
    clock.increment(QUESTION_MS);
    typed.write('what?\n');
    await expect.poll(written).toMatch(/that is no answer.*\n┃ run it\?.*: $/);
    typed.write('y\n');
    await expect.poll(written).toMatch(/\n■ completed.*\n> $/);
    expect(ran).toEqual(['prod']);
    // Once for each of the two waits.
    expect(written().match(/\n> /g)).toHaveLength(2);
    expect(written().replaceAll('\n', '')).not.toMatch(/\p{Cc}/u);
    typed.end();
    expect(await session.finished).toBe('done');
    session.close();
  });
});
