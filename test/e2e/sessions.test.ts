/**
 * Sessions of `runchart run`: continued, held by another process, waiting for a decision. Also the end after failures.
 */

import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { createAgent, defineTool } from '../../src/index.ts';
import { openai } from '../../src/models/openai/openai.ts';
import { jsonlStore } from '../../src/stores/jsonl/jsonlStore.ts';
import { proves, sampled, volume } from '../support/tier.ts';
import { hasTerminals, start, startOnTerminal, storedEntries, temporaryDirectory } from './cli.ts';
import { type ModelServer, modelServer, type Script } from './modelServer.ts';
import { explains, hangs, KEY, type Place, place } from './runDirectory.ts';

const asksToDelete: Script = (reply) => {
  reply.call('call_1', 'Delete', '{"path":"notes.txt\\u001b[2K"}');
  reply.finish('tool_calls');
};

/** A session of another host, with a call that waits for approval. */
async function waitingSession(server: ModelServer): Promise<Place> {
  const where = await place(server);
  const remove = defineTool({
    name: 'Delete',
    description: 'Deletes a file.',
    parameters: z.object({ path: z.string() }),
    needsApproval: true,
    execute: ({ path }, { cwd }) => rm(join(cwd, path)),
  });
  const model = openai('m1', { apiKey: KEY, baseURL: server.baseURL });
  const agent = createAgent({ model, tools: [remove], store: jsonlStore(where.sessions), cwd: where.cwd });
  const conversation = await agent.open('s');
  const { termination } = await conversation.send('delete the notes').result;
  expect(termination).toBe('Suspended');
  await agent.close();
  return where;
}

describe('a session', () => {
  test('it continues: the model receives the earlier request, in the original directory', async () => {
    const server = await modelServer(explains, explains);
    const { cwd, env, root } = await place(server);
    expect((await start(['run', 'one', '-m', 'm1', '--new', '--session', 's'], { cwd, env }).ended).code).toBe(0);
    const elsewhere = start(['run', 'two', '-m', 'm1', '--session', 's'], { cwd: root, env });
    expect((await elsewhere.ended).code).toBe(2);
    expect(elsewhere.stderr).toContain(`give --cwd ${cwd}`);
    const there = start(['run', 'two', '-m', 'm1', '--session', 's', '--cwd', cwd], { cwd: root, env });
    expect((await there.ended).code).toBe(0);
    const requestMessages = server.asked[1]?.messages.filter(({ role }) => role !== 'system');
    expect(requestMessages?.map(({ role, content }) => [role, content])).toEqual([
      ['user', 'one'],
      ['assistant', 'It counts words.'],
      ['user', 'two'],
    ]);
  });

  test.skipIf(!proves)(
    'a missing session is a usage error that names similar ones, and nothing is started or sent',
    async () => {
      const server = await modelServer(explains, explains);
      const { cwd, env, sessions } = await place(server);
      for (const name of ['rent', 'trip-2026']) {
        const began = start(['run', 'one', '-m', 'm1', '--new', '--session', name], { cwd, env });
        expect((await began.ended).code).toBe(0);
      }
      const before = (await readdir(sessions)).sort();
      const near = 'Did you mean rent?';
      const misses = [
        [
          ['run', '-m', 'm1', '--session', 'rnet'],
          `there is no session rnet in ${sessions}: --new begins one of that name. ${near}`,
        ],
        [['run', 'two', '-m', 'm1', '--session', 'rnet'], near],
        [['run', 'two', '-m', 'm1', '--session', 'somewhere else'], 'The latest are trip-2026, rent.'],
        [['replay', 'rnet'], near],
      ] as const;
      for (const [words, message] of sampled(misses, volume.caseOf)) {
        const program = start(words, { cwd, env });
        expect(await program.ended).toEqual({ code: 2, signal: null });
        expect(program.stderr).toContain(message);
      }
      const again = start(['run', 'two', '-m', 'm1', '--new', '--session', 'rent'], { cwd, env });
      expect((await again.ended).code).toBe(2);
      expect(again.stderr).toContain('the session rent exists already');
      expect((await readdir(sessions)).sort()).toEqual(before);
      expect(server.asked).toHaveLength(2);
    },
  );

  test('it is refused while another process holds it', async () => {
    const { cwd, env } = await place(await modelServer(hangs));
    const holder = start(['run', 'one', '-m', 'm1', '--new', '--session', 's'], { cwd, env });
    await holder.says('Let me think');
    const second = start(['run', 'two', '-m', 'm1', '--session', 's'], { cwd, env });
    expect((await second.ended).code).toBe(6);
    expect(second.stderr).toContain(`process ${holder.process.pid}`);
  });
});

describe('a session that waits for a decision', () => {
  test.skipIf(!proves)('without a terminal the call is named, nothing is sent, and the exit code is 3', async () => {
    const server = await modelServer(asksToDelete);
    const { cwd, env, sessions } = await waitingSession(server);
    const before = await storedEntries(sessions, 's');
    const program = start(['run', 'and now?', '-m', 'm1', '--session', 's'], { cwd, env });
    expect((await program.ended).code).toBe(3);
    expect(program.stderr).toContain('Delete waits for a decision (permission)');
    expect(program.stderr).toContain('runchart run --session s');
    expect(program.stderr).toContain('the prompt was not sent');
    expect(server.asked).toHaveLength(1);
    expect(await storedEntries(sessions, 's')).toEqual(before);
  });

  test.skipIf(!hasTerminals)('on a terminal it requires an answer, and a denial reaches the model', async () => {
    const server = await modelServer(asksToDelete, explains);
    const { cwd, env, sessions } = await waitingSession(server);
    const program = startOnTerminal(['run', '-m', 'm1', '--session', 's'], { cwd, env });
    await program.says('approve? [y]es, [n]o, [l]ater:');
    program.process.stdin?.write('maybe\r');
    await expect.poll(() => program.stdout.split('approve?').length).toBe(3);
    program.process.stdin?.write('n\r');
    expect(await program.ended).toEqual({ code: 0, signal: null });
    expect(program.stdout).toContain('"path": "notes.txt\\u001b[2K"');
    const entries = await storedEntries(sessions, 's');
    expect(entries.find(({ type }) => type === 'tool-result')).toMatchObject({ outcome: 'failed', code: 'denied' });
    expect(entries.find(({ type }) => type === 'run-stop')).toMatchObject({ reason: 'completed' });
    expect(String(server.asked[1]?.messages.at(-1)?.content)).toContain('[tool error]');
  });

  if (proves)
    test.skipIf(!hasTerminals)('"later" leaves it waiting, and so does the end of the input', async () => {
      const { cwd, env, sessions } = await waitingSession(await modelServer(asksToDelete));
      const before = await storedEntries(sessions, 's');
      for (const typed of ['l\r', '\x04']) {
        const program = startOnTerminal(['run', '-m', 'm1', '--session', 's'], { cwd, env });
        await program.says('[l]ater:');
        program.process.stdin?.write(typed);
        expect(await program.ended).toEqual({ code: 3, signal: null });
        expect(await storedEntries(sessions, 's')).toEqual(before);
      }
    });

  test.skipIf(!hasTerminals)(
    'Ctrl-C at the question cancels it: the call is cancelled, and the stop is durable',
    async () => {
      const { cwd, env, sessions } = await waitingSession(await modelServer(asksToDelete));
      const program = startOnTerminal(['run', '-m', 'm1', '--session', 's'], { cwd, env });
      await program.says('[l]ater:');
      program.process.stdin?.write('\x03');
      expect(await program.ended).toEqual({ code: 130, signal: null });
      const entries = await storedEntries(sessions, 's');
      expect(entries.find(({ type }) => type === 'tool-result')).toMatchObject({ outcome: 'cancelled' });
      expect(entries.find(({ type }) => type === 'run-stop')).toMatchObject({ reason: 'interrupted' });
    },
  );
});

describe('usage errors', () => {
  const misuses: [string, string[], string, Record<string, string>][] = [
    ['no model', ['run', 'hi'], 'OPENAI_MODEL', {}],
    ['no key', ['run', 'hi', '-m', 'm1'], 'OPENAI_API_KEY', { OPENAI_API_KEY: '' }],
    ['no prompt', ['run', '-m', 'm1'], 'give a prompt', {}],
    ['an unknown option', ['run', 'hi', '--modle', 'm1'], "unknown option '--modle'", {}],
    ['an unknown command', ['walk'], "unknown command 'walk'", {}],
    ['no model and no command', [], 'OPENAI_MODEL', {}],
    ['an invalid directory', ['run', 'hi', '-m', 'm1', '--cwd', 'main.go'], 'is not a directory', {}],
    ['no prompt for a new session', ['run', '-m', 'm1', '--new', '--session', 's'], 'give a prompt', {}],
    ['an invalid session id', ['run', 'hi', '-m', 'm1', '--session', '../x'], 'conversation id', {}],
    ['an unknown chart', ['charts', 'NOPE'], 'there is no chart "NOPE"', {}],
  ];
  test.for(sampled(misuses, volume.caseOf))(
    '%s is a usage error: exit code 2 and the next step',
    async ([, args, message, variables]) => {
      const { cwd, env } = await place({ baseURL: 'http://127.0.0.1:9/v1', asked: [] });
      const program = start(args, { cwd, env: { ...env, ...variables } });
      expect(await program.ended).toEqual({ code: 2, signal: null });
      expect(program.stderr).toContain(message);
      expect(program.stdout).toBe('');
    },
  );

  test('an error of the server is shown with the next step, ends with 1, and contains no key', async () => {
    const server = await modelServer((reply) => reply.refuse(401, { error: { message: `no such key ${KEY}` } }));
    const { cwd, env } = await place(server);
    const program = start(['run', 'hi', '-m', 'm1'], { cwd, env });
    expect(await program.ended).toEqual({ code: 1, signal: null });
    expect(program.stderr).toContain('check OPENAI_API_KEY');
    expect(program.stderr).toContain('■ error (model)');
    expect(program.stdout + program.stderr).not.toContain(KEY);
  });

  if (proves)
    test('--help and --version end with 0', async () => {
      const cwd = await temporaryDirectory();
      for (const [args, message] of [
        [['--help'], 'Usage: runchart'],
        [['run', '--help'], 'Exit codes: 0 completed'],
        [['--version'], '.'],
      ] as const) {
        const program = start(args, { cwd });
        expect((await program.ended).code).toBe(0);
        expect(program.stdout).toContain(message);
      }
    });
});
