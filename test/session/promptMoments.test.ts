/** The moment at which the system prompt of a coding agent is assembled, and its values at that moment. */
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { ConfigurationError } from '../../src/index.ts';
import { type SystemPromptOptions, systemPrompt } from '../../src/node.ts';
import { type BenchOptions, bench, restart } from '../support/agentBench.ts';
import { temporaryFolder } from '../support/temporaryFolder.ts';

const DAY_MS = 86_400_000;
const variable = (name: string): string => `\${${name}}`;
const prompting = (options: SystemPromptOptions = {}, more: BenchOptions = {}) => {
  const plugins = [systemPrompt({ git: false, instructionFiles: [], ...options })];
  return { replies: ['a', 'b', 'c'], plugins, ...more };
};
const dayOf = (at: number): string => {
  const day = new Date(at);
  const two = (number: number): string => String(number).padStart(2, '0');
  return `${day.getFullYear()}-${two(day.getMonth() + 1)}-${two(day.getDate())}`;
};

it.each([
  [{ template: 7 }, 'template'],
  [{ instructionFiles: 'AGENTS.md' }, 'instructionFiles'],
  [{ instructionFiles: [7] }, 'instructionFiles'],
  [{ git: 'no' }, 'git'],
  [{ files: [] }, 'files is unknown'],
  [null, 'systemPrompt'],
])('the options %j are refused at the start', (options, why) => {
  const make = () => systemPrompt(options as never);
  expect(make).toThrow(ConfigurationError);
  expect(make).toThrow(why);
});

it('the date is that of the first request, and stays the same until the conversation is opened again', async () => {
  const options = prompting({ template: `It is ${variable('DATE')}.` });
  const on = await bench(options);
  const days: string[] = [];
  for (let request = 0; request < 2; request += 1) {
    await on.clock.advance(3 * DAY_MS);
    days.push(`It is ${dayOf(on.clock.now())}.`);
    await on.conversation.send('hi').result;
  }
  const [first, second] = on.model.calls.map(({ system }) => system.split('\n')[0]);
  expect([first, second]).toEqual([days[0], days[0]]);
  const next = await restart(on, { ...options, clock: on.clock });
  await next.conversation.send('hi').result;
  expect(next.model.calls[0]?.system).toContain(days[1]);
});

it('values are inserted once: a directory that is named like a variable keeps its name', async () => {
  const cwd = join(temporaryFolder(), variable('MODEL'));
  mkdirSync(cwd);
  const template = `${variable('CWD')}, ${variable('CWD')} and ${variable('OTHER')} by ${variable('MODEL')}`;
  const { conversation, model } = await bench(prompting({ template }, { cwd }));
  await conversation.send('hi').result;
  expect(model.calls[0]?.system).toContain(`${cwd}, ${cwd} and ${variable('OTHER')} by scripted`);
});

it('each conversation of an agent has its own', async () => {
  const on = await bench(prompting({ template: `It is ${variable('DATE')}.` }));
  await on.conversation.send('hi').result;
  await on.clock.advance(3 * DAY_MS);
  await (await on.agent.open('another')).send('hi').result;
  const [first, second] = on.model.calls.map(({ system }) => system);
  expect(second).toContain(dayOf(on.clock.now()));
  expect(first).not.toBe(second);
});

it('a cancel while git runs ends the run, and the next request has a whole prompt', async () => {
  const [bin, cwd] = [temporaryFolder(), temporaryFolder()];
  const started = join(bin, 'started');
  const script = (text: string): void => writeFileSync(join(bin, 'git'), `#!/bin/sh\n${text}\n`);
  script(`echo > ${started}; exec sleep 60`);
  chmodSync(join(bin, 'git'), 0o755);
  vi.stubEnv('PATH', `${bin}${delimiter}${process.env.PATH}`);
  onTestFinished(() => void vi.unstubAllEnvs());
  writeFileSync(join(cwd, 'AGENTS.md'), 'Use tabs.');
  const options = { git: true, instructionFiles: ['AGENTS.md'], template: 'T' };
  const { conversation, model } = await bench(prompting(options, { cwd }));
  const run = conversation.send('hi');
  await vi.waitFor(() => expect(existsSync(started)).toBe(true), { timeout: 20_000 });
  await run.cancel();
  expect((await run.result).termination).toBe('Cancelled');
  script('echo trunk');
  await conversation.send('again').result;
  expect(model.calls).toHaveLength(1);
  expect(model.calls[0]?.system).toContain('Use tabs.');
  expect(model.calls[0]?.system).toContain('Branch: trunk');
  expect(conversation.log().filter(({ type }) => type === 'diagnostic')).toEqual([]);
});
