/** `runchart run` as a process against a model server: streaming, logs, signals, sessions, exit codes. */
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createAgent } from '../../src/index.ts';
import { project } from '../../src/projector/index.ts';
import { jsonlStore } from '../../src/stores/jsonl/jsonlStore.ts';
import { deaf, scripted, t } from '../support/scriptedReplies.ts';
import { proves, sampled, volume } from '../support/tier.ts';
import { start, startScript, storedEntries, TOOL_NAMES } from './cli.ts';
import { modelServer, type Script } from './modelServer.ts';
import { entriesIn, explains, hangs, KEY, place, QUESTION, readsMainGo } from './runDirectory.ts';

const says =
  (text: string): Script =>
  (reply) => {
    reply.text(text);
    reply.finish('stop');
  };

describe('one request', () => {
  test('S002-01 standard output contains the reply alone, standard error contains the steps, and a log exists', async () => {
    const server = await modelServer(readsMainGo, explains);
    const { cwd, env, sessions } = await place(server);
    const program = start(['run', QUESTION, '-m', 'm1', '--new', '--session', 's'], { cwd, env });
    expect(await program.ended).toEqual({ code: 0, signal: null });
    expect(program.stdout).toBe("I'll read the file.\nIt counts words.\n");
    const steps = [`> ${QUESTION}`, '→ Read {"file_path":"main.go"}', '✓ Read 34 lines', '■ completed · 2 turns'];
    const found = steps.map((step) => program.stderr.indexOf(step));
    expect(found).toEqual(found.filter((at) => at >= 0).sort((a, b) => a - b));
    expect(program.stderr).toContain('200 tokens in, 40 out · cost unknown');
    expect(program.stderr).toContain(join(sessions, 's.jsonl'));
    expect(server.asked.map(({ model, authorization }) => [model, authorization])).toEqual([
      ['m1', `Bearer ${KEY}`],
      ['m1', `Bearer ${KEY}`],
    ]);
    expect(server.asked[0]?.tools?.map((tool) => tool.function.name)).toEqual(TOOL_NAMES);
    expect(String(server.asked[1]?.messages.at(-1)?.content)).toContain('package main');
  });

  test('the first words are shown while the server delays the rest', async () => {
    let goOn = (): void => {};
    const held = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const server = await modelServer(async (reply) => {
      reply.text('a first word');
      await held;
      reply.text(', a last word');
      reply.finish('stop');
    });
    const { cwd, env } = await place(server);
    const program = start(['run', 'hello', '-m', 'm1'], { cwd, env });
    await program.says('a first word');
    expect(program.process.exitCode).toBeNull();
    goOn();
    expect((await program.ended).code).toBe(0);
    expect(program.stdout).toBe('a first word, a last word\n');
  });

  test('piped text is joined to the prompt, and OPENAI_MODEL may name the model', async () => {
    const server = await modelServer(explains);
    const { cwd, env } = await place(server);
    const program = start(['run', 'what', 'is', 'this?'], {
      cwd,
      env: { ...env, OPENAI_MODEL: 'm2' },
      input: 'a\nb\n',
    });
    expect((await program.ended).code).toBe(0);
    expect(server.asked[0]?.model).toBe('m2');
    expect(server.asked[0]?.messages.at(-1)?.content).toBe('what is this?\n\na\nb');
  });

  if (proves)
    test('a pipe without input is ignored after three seconds, with a message', async () => {
      const server = await modelServer(explains);
      const { cwd, env } = await place(server);
      const program = start(['run', 'hello', '-m', 'm1'], { cwd, env, input: null });
      expect((await program.ended).code).toBe(0);
      expect(program.stderr).toContain('nothing came on standard input within 3 s');
    });
});

describe('--json', () => {
  test('standard output is the log, entry by entry, and nothing else', async () => {
    const { cwd, env, sessions } = await place(await modelServer(readsMainGo, explains, explains));
    const first = start(['run', QUESTION, '-m', 'm1', '--json', '--new', '--session', 's'], { cwd, env });
    expect((await first.ended).code).toBe(0);
    const printed = entriesIn(first.stdout);
    const stored = await storedEntries(sessions, 's');
    expect(printed).toEqual(stored);
    expect(stored.map(({ seq }) => seq)).toEqual(stored.map((_, index) => index));
    const view = project(printed);
    expect(view.state).toBe('idle');
    expect(view.cycles.map(({ stop }) => stop?.reason)).toEqual(['completed']);
    const second = start(['run', 'and now?', '-m', 'm1', '--json', '--session', 's'], { cwd, env });
    expect((await second.ended).code).toBe(0);
    expect([...printed, ...entriesIn(second.stdout)]).toEqual(await storedEntries(sessions, 's'));
  });

  if (proves)
    test('an entry is printed as soon as it is durable', async () => {
      const { cwd, env } = await place(await modelServer(hangs));
      const program = start(['run', 'hello', '-m', 'm1', '--json'], { cwd, env });
      await program.says('"type":"user-message"');
      expect(program.process.exitCode).toBeNull();
    });
});

describe('a session with messages in its queue', () => {
  test('it continues until the last of them is answered', async () => {
    const server = await modelServer(...['one', 'two', 'three', 'four'].map((word) => says(word)));
    const { cwd, env, sessions } = await place(server);
    const policies = { promoteFollowUpOn: ['completed'] as const };
    const agent = createAgent({ model: scripted([deaf(t('nothing'))]), policies, cwd });
    onTestFinished(() => agent.close());
    const conversation = await agent.open('s');
    conversation.send('first');
    for (const text of ['second', 'third', 'fourth']) conversation.send(text, { kind: 'followUp' });
    await conversation.cancel();
    // As a killed process leaves it: a close would return the messages.
    const stored = await jsonlStore(sessions).open('s');
    await stored.append(conversation.log(), 0);
    await stored.close();
    const program = start(['run', '-m', 'm1', '--session', 's'], { cwd, env });
    expect(await program.ended).toEqual({ code: 0, signal: null });
    expect(program.stdout).toBe('one\ntwo\nthree\nfour\n');
    expect(server.asked.map(({ messages }) => messages.at(-1)?.content)).toEqual([
      'first',
      'second',
      'third',
      'fourth',
    ]);
  });
});

describe('signals', () => {
  test.for(sampled(['SIGINT', 'SIGTERM', 'SIGHUP'] as const, volume.caseOf))(
    '%s during a stream that hangs ends with 130, and the stop is durable',
    async (name) => {
      const { cwd, env, sessions } = await place(await modelServer(hangs));
      const program = start(['run', 'hello', '-m', 'm1', '--new', '--session', 's'], { cwd, env });
      await program.says('Let me think');
      program.process.kill(name);
      expect(await program.ended).toEqual({ code: 130, signal: null });
      const stop = (await storedEntries(sessions, 's')).find(({ type }) => type === 'run-stop');
      expect(stop).toMatchObject({ reason: 'interrupted', cause: 'cancelled' });
      expect(program.stderr).toContain('■ interrupted (cancelled)');
    },
  );

  test('a second Ctrl-C ends the process at once', async () => {
    const program = startScript(`
      import { interrupts } from './dist/src/cli/personInput.js';
      interrupts().addEventListener('abort', () => console.log('asked to end'));
      setInterval(() => {}, 1000);
      console.log('ready');
    `);
    await program.says('ready');
    program.process.kill('SIGINT');
    await program.says('asked to end');
    expect(program.process.exitCode).toBeNull();
    program.process.kill('SIGINT');
    expect(await program.ended).toEqual({ code: 130, signal: null });
  });

  test('a reader that disconnects cancels the run', async () => {
    const { cwd, env, sessions } = await place(
      await modelServer(async (reply) => {
        const timer = setInterval(() => reply.text('more and more '), 5);
        onTestFinished(() => clearInterval(timer));
        await reply.gone;
        clearInterval(timer);
      }),
    );
    const program = start(['run', 'hello', '-m', 'm1', '--new', '--session', 's'], { cwd, env });
    await program.says('more');
    program.process.stdout?.destroy();
    expect(await program.ended).toEqual({ code: 130, signal: null });
    const stop = (await storedEntries(sessions, 's')).find(({ type }) => type === 'run-stop');
    expect(stop).toMatchObject({ reason: 'interrupted' });
  });
});
