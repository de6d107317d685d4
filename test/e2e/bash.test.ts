/** Bash in real programs: `runchart run`, and a program that uses the package. */
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createAgent } from '../../src/index.ts';
import { jsonlStore } from '../../src/stores/jsonl/jsonlStore.ts';
import { codingTools } from '../../src/tools/coding/index.ts';
import { scripted } from '../support/scriptedReplies.ts';
import { sampled, volume } from '../support/tier.ts';
import { alive, gone, hasProc, numberIn } from '../tools/coding/liveProcesses.ts';
import { hasTerminals, start, startOnTerminal, startScript, storedEntries, temporaryDirectory } from './cli.ts';
import { modelServer, type Script } from './modelServer.ts';
import { explains, type Place, place } from './runDirectory.ts';

/** One process of the group, one that ignores TERM, one in a separate session. */
const COMMAND =
  "(setsid bash -c 'echo $$ > away; sleep 1000; :' &); bash -c \"trap '' TERM; sleep 1000; :\" & sleep 0.1; echo $$ > here; wait";
const runsBash: Script = (reply) => {
  reply.call('call_1', 'Bash', JSON.stringify({ command: COMMAND }));
  reply.finish('tool_calls');
};
const words = ['run', 'Go', '-m', 'm1', '--new', '--session', 's'];

/** Process ids are those of the machine only outside the sandbox. */
async function unsandboxed(there: Place): Promise<Place> {
  const config = join(there.root, 'config');
  await mkdir(join(config, 'runchart'), { recursive: true });
  await writeFile(join(config, 'runchart/config.json'), '{"sandbox":"off"}');
  return { ...there, env: { ...there.env, XDG_CONFIG_HOME: config } };
}

const idsIn = async (directory: string): Promise<number[]> => [
  await numberIn(join(directory, 'here')),
  await numberIn(join(directory, 'away')),
];

/** The log after a person's approval. */
async function approve({ sessions, cwd }: Place): Promise<void> {
  const agent = createAgent({
    model: scripted([]),
    tools: codingTools({ sandbox: 'off' }),
    store: jsonlStore(sessions),
    cwd,
  });
  const conversation = await agent.open('s');
  expect(await conversation.decide({ callId: 'call_1', action: 'approve', by: 'ada' })).toBe('applied');
  await agent.close();
}

describe.skipIf(!hasProc)('runchart run', () => {
  test('it requires approval for a command: without a terminal nothing is run and the exit code is 3', async () => {
    const { cwd, env, sessions } = await place(await modelServer(runsBash));
    const program = start(words, { cwd, env });
    expect(await program.ended).toEqual({ code: 3, signal: null });
    expect(program.stderr).toContain('Bash waits for a decision (permission)');
    expect(existsSync(join(cwd, 'here'))).toBe(false);
    const found = (await storedEntries(sessions, 's')).map(({ type }) => type);
    expect(found).toContain('tool-suspended');
    expect(found).not.toContain('tool-started');
  });

  test.for(sampled(['SIGINT', 'SIGTERM', 'SIGHUP'] as const, volume.caseOf))(
    'BED-5 %s during a command ends it with all its children',
    async (name) => {
      const there = await unsandboxed(await place(await modelServer(runsBash)));
      const { cwd, env, sessions } = there;
      expect((await start(words, { cwd, env }).ended).code).toBe(3);
      await approve(there);
      const program = start(['run', '-m', 'm1', '--session', 's'], { cwd, env });
      const ids = await idsIn(cwd);
      // Three shells and two sleeping processes.
      await alive(5, ...ids);
      program.process.kill(name);
      expect(await program.ended).toEqual({ code: 130, signal: null });
      await gone(...ids);
      const entries = await storedEntries(sessions, 's');
      expect(entries.find(({ type }) => type === 'tool-result')).toMatchObject({ outcome: 'cancelled' });
      expect(entries.filter(({ type }) => type === 'run-stop').at(-1)).toMatchObject({ reason: 'interrupted' });
    },
  );

  test.skipIf(!hasTerminals)('BED-5 Ctrl-C on a terminal does so too, after an approval', async () => {
    const { cwd, env } = await unsandboxed(await place(await modelServer(runsBash, explains)));
    const program = startOnTerminal(words, { cwd, env });
    await program.says('approve? [y]es, [n]o');
    expect(existsSync(join(cwd, 'here'))).toBe(false);
    program.process.stdin?.write('y\n');
    const ids = await idsIn(cwd);
    program.process.stdin?.write('\u0003');
    expect((await program.ended).code).toBe(130);
    await gone(...ids);
  });
});

/** A user's program that runs the command. */
const host = (directory: string, afterwards: string, args: object = {}): string => `
  import { createAgent } from './dist/src/index.js';
  import { codingTools } from './dist/src/node.js';
  let calls = 0;
  const model = { id: 'm', async *stream() {
    if (calls++ > 0) return yield { type: 'finish', reason: 'stop' };
    yield { type: 'tool-call', callId: 'c1', name: 'Bash', args: JSON.stringify(${JSON.stringify({ command: COMMAND, ...args })}) };
    yield { type: 'finish', reason: 'tool-calls' };
  } };
  const agent = createAgent({ model, tools: codingTools({ sandbox: 'off', extra: ['Background'] }), cwd: ${JSON.stringify(directory)} });
  const conversation = await agent.open('c');
  conversation.send('go');
  console.log('listeners', ['SIGINT', 'SIGTERM', 'SIGHUP'].map((name) => process.listenerCount(name)).join(' '));
  process.stdin.once('data', async () => {
    ${afterwards};
    process.stdin.destroy();
  });
`;

describe.skipIf(!hasProc)('a program that uses the package', () => {
  const endings = [
    ['calls process.exit', 'process.exit(7)', 7],
    ['throws an uncaught error', 'throw new Error("unheard")', 1],
    ['closes its agent, and then has nothing to wait for', 'await agent.close()', 0],
    ['cancels, and then has nothing to wait for', 'await conversation.cancel()', 0],
  ] as const;
  test.for(sampled(endings, volume.caseOf))('%s leaves no process', async ([, afterwards, code]) => {
    const directory = await temporaryDirectory();
    const program = startScript(host(directory, afterwards));
    const ids = await idsIn(directory);
    expect(program.stdout).toBe('listeners 0 0 0\n');
    program.process.stdin?.write('now\n');
    expect(await program.ended).toEqual({ code, signal: null });
    await gone(...ids);
  });

  test('a command in the background does not keep it alive, and ends with it', async () => {
    const directory = await temporaryDirectory();
    const program = startScript(host(directory, '', { run_in_background: true }));
    const ids = await idsIn(directory);
    await alive(2, ...ids);
    program.process.stdin?.write('now\n');
    expect(await program.ended).toEqual({ code: 0, signal: null });
    await gone(...ids);
  });
});
