/** `runchart demo` and `runchart charts` as processes. */
import { cp, readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { project } from '../../src/projector/index.ts';
import { proves, sampled, volume } from '../support/tier.ts';
import { hasTerminals, type Program, start, startOnTerminal, storedEntries, temporaryDirectory } from './cli.ts';

const APPROVE = 'approve? [y]es, [n]o';

/** The demo writes into the directory for temporary files, which belongs to the test here. */
async function demoPlace() {
  const directory = await temporaryDirectory();
  return { cwd: directory, env: { TMPDIR: directory } };
}

function found(program: Program, pattern: RegExp): string {
  const value = pattern.exec(stripVTControlCharacters(program.stdout))?.[1];
  if (value === undefined) throw new Error(`expected ${pattern} in\n${program.stdout}`);
  return value;
}

const serverOf = (program: Program): number => Number(found(program, /process (\d+)/));
const lives = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};
const noteIn = (program: Program): Promise<string> => {
  const log = found(program, /^log\s+(\S+\.jsonl)/m);
  return readFile(join(dirname(dirname(log)), 'workspace', 'SUMMARY.md'), 'utf8');
};

describe('the demo', () => {
  test('without a terminal it decides automatically, reports that, and ends with 0 in less than 20 s', async () => {
    const since = performance.now();
    const program = start(['demo'], await demoPlace());
    expect(await program.ended).toEqual({ code: 0, signal: null });
    expect(performance.now() - since).toBeLessThan(20_000);
    const parts = [
      '> Read main.go and tell me what it does',
      '→ Read {"file_path":"main.go"}',
      '✓ Read 34 lines',
      'counts the words of its standard input',
      '■ completed · 2 turns',
      '⏸ WriteNote waits: permission',
      'there is no terminal to ask on: the demo approves this call by itself',
      '✓ WriteNote',
      '■ completed · 2 turns',
      'Read succeeded, WriteNote succeeded',
    ];
    let at = 0;
    for (const part of parts) {
      const next = program.stdout.indexOf(part, at);
      expect(next, part).toBeGreaterThanOrEqual(at);
      at = next + part.length;
    }
    expect(found(program, /^cost\s+(\$0\.\d+)/m)).not.toBe('$0.000000');
    expect(program.stdout).toMatch(/^further .* replay .*demo\.jsonl\n.*demo\.jsonl\n.* charts\n.* run -m <model>/m);
    expect(await noteIn(program)).toContain('counts the words');
    expect(lives(serverOf(program))).toBe(false);
  });

  if (proves)
    test('its log contains both requests as completed, the second after a suspension', async () => {
      const program = start(['demo'], await demoPlace());
      expect((await program.ended).code).toBe(0);
      const log = found(program, /^log\s+(\S+\.jsonl)/m);
      const entries = await storedEntries(dirname(log), 'demo');
      const { cycles, diagnostics } = project(entries);
      expect(diagnostics).toEqual([]);
      expect(cycles.map(({ stop }) => stop?.reason)).toEqual(['completed', 'completed']);
      const order = entries.map(({ type }) => type).filter((type) => /suspended|decision|resumed/.test(type));
      expect(entries.find((entry) => entry.type === 'decision')).toMatchObject({ decision: { by: 'demo' } });
      expect(order).toEqual(['tool-suspended', 'run-suspended', 'decision', 'run-resumed', 'decision-consumed']);
    });

  const answers = [
    ['y', 'WriteNote succeeded', true],
    ['n', 'WriteNote failed', false],
  ] as const;
  test.skipIf(!hasTerminals).for(sampled(answers, volume.caseOf))(
    'on a terminal it asks, and "%s" gives %s',
    async ([typed, outcome, written]) => {
      const program = startOnTerminal(['demo'], await demoPlace());
      await program.says(APPROVE);
      program.process.stdin?.write(`${typed}\r`);
      expect(await program.ended).toEqual({ code: 0, signal: null });
      expect(program.stdout).toContain(outcome);
      expect(await noteIn(program).then(Boolean, () => false)).toBe(written);
    },
  );

  test.skipIf(!proves || !hasTerminals)('the end of the input is a denial, never an approval', async () => {
    const program = startOnTerminal(['demo'], await demoPlace());
    await program.says(APPROVE);
    program.process.stdin?.write('\x04');
    expect((await program.ended).code).toBe(0);
    expect(program.stdout).toContain('the demo ends here, so it denies this call by itself');
    expect(program.stdout).toContain('WriteNote failed');
  });

  test.skipIf(!hasTerminals)('Ctrl-C ends it with 130, and its model server with it', async () => {
    const program = startOnTerminal(['demo'], await demoPlace());
    await program.says(APPROVE);
    expect(lives(serverOf(program))).toBe(true);
    program.process.stdin?.write('\x03');
    expect(await program.ended).toEqual({ code: 130, signal: null });
    expect(lives(serverOf(program))).toBe(false);
  });

  test.skipIf(!proves)('its model server ends with it, even if it is killed', async () => {
    const program = start(['demo'], await demoPlace());
    await program.says('process ');
    await program.says('all else is real');
    const pid = serverOf(program);
    onTestFinished(() => void (lives(pid) && process.kill(pid, 'SIGKILL')));
    program.process.kill('SIGKILL');
    await program.ended;
    await expect.poll(() => lives(pid)).toBe(false);
  });
});

describe('the charts', () => {
  test('all are drawn as Markdown with mermaid, or one by its id', async () => {
    const cwd = await temporaryDirectory();
    const all = start(['charts'], { cwd });
    expect((await all.ended).code).toBe(0);
    const titles = [...all.stdout.matchAll(/^## (\w+)$/gm)].map(([, title]) => title);
    expect(titles).toEqual([
      'CONVERSATION',
      'RUN',
      'LLM_CALL',
      'COMPACTION',
      'TOOL_ROUND',
      'TOOL_CALL',
      'RESUME_TOOL_CALL',
      'RESPONSE_STATE',
    ]);
    const one = start(['charts', 'tool_call'], { cwd });
    expect((await one.ended).code).toBe(0);
    expect(one.stdout).toMatch(/^stateDiagram-v2/m);
    expect(one.stdout).toContain('ExecuteTool --> Suspended');
    expect(all.stdout).toContain(one.stdout.trim());
  });
});

if (proves)
  test('without the package openai the charts are drawn, and the demo names the package to install', async () => {
    const root = join(await temporaryDirectory(), 'package');
    await cp(inject('packageRoot'), root, { recursive: true, verbatimSymlinks: true });
    await rm(join(root, 'node_modules', 'openai'), { recursive: true });
    const main = join(root, 'dist', 'src', 'cli', 'main.js');
    const charts = start(['charts', 'RUN'], { main });
    expect((await charts.ended).code).toBe(0);
    const demo = start(['demo'], { main });
    expect((await demo.ended).code).toBe(2);
    expect(demo.stderr).toContain('npm install openai');
  });
