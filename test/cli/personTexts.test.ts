/** Texts of a session for a person: exported blocks hold any text, and a cut output of a command shows the size of the missing part. */
import { getEventListeners } from 'node:events';
import { tmpdir } from 'node:os';
import { expect, onTestFinished, test, vi } from 'vitest';
import { markdownOf } from '../../src/cli/commands/exportSession.ts';
import { personCommand } from '../../src/cli/commands/messageContent.ts';
import { approvalLines } from '../../src/cli/interactive/approval.ts';
import type { LogEntry, PendingCall } from '../../src/index.ts';

/** The fenced blocks of a Markdown text by the rule of CommonMark: a block ends with a fence of at least its length. */
function blocksOf(markdown: string): string[] {
  const blocks: string[] = [];
  let open: { fence: string; lines: string[] } | undefined;
  for (const line of markdown.split('\n')) {
    const [, fence = ''] = /^(`{3,})\w*$/.exec(line) ?? [];
    if (open === undefined) {
      if (fence !== '') open = { fence, lines: [] };
    } else if (/^`+$/.test(line) && line.length >= open.fence.length) {
      blocks.push(open.lines.join('\n'));
      open = undefined;
    } else open.lines.push(line);
  }
  expect(open).toBeUndefined();
  return blocks;
}

const callOf = (args: object): object => ({
  type: 'agent-output',
  item: { type: 'tool-call', callId: 'c1', name: 'Bash', args },
});
const resultOf = (text: string): object => ({
  ...{ type: 'tool-result', callId: 'c1', outcome: 'succeeded' },
  content: [{ type: 'text', text }],
});

test.for(Array.from({ length: 13 }, (_, count) => '`'.repeat(count)))(
  'an exported text with the fence %j stays one block: as a result, a command and an argument',
  (fence) => {
    for (const text of [`a\n${fence}\nb`, `${fence}sh\na\n${fence}`, `${fence} ${fence}`]) {
      const entries = [callOf({ command: text }), resultOf(text), callOf({ note: text })] as unknown as LogEntry[];
      expect(blocksOf(markdownOf(entries, 's'))).toEqual([text, text, JSON.stringify({ note: text }, null, 2)]);
    }
  },
);

test.for(['one', 'one\ntwo', '\n', 'one\n\n# a heading', '> quoted\n```\nopen', '- a\n## Agent\n', ' \n\n '])(
  'each line of the reasoning %j is quoted in an exported text, so none looks like a part of the session',
  (text) => {
    const entries = [{ type: 'agent-output', item: { type: 'reasoning', text } }] as unknown as LogEntry[];
    const lines = markdownOf(entries, 's').replace('# Session s\n\n', '').replace(/\n$/, '').split('\n');
    expect(lines.map((line) => line.slice(0, 2))).toEqual(lines.map(() => '> '));
    expect(lines.map((line) => line.slice(2)).join('\n')).toBe(text);
  },
);

test('the texts of a message stand below each other in an exported text', () => {
  const content = [
    { type: 'text', text: 'Run /cmd' },
    { type: 'text', text: 'Its notes' },
  ];
  const entries = [{ type: 'user-message', kind: 'direct', content }] as unknown as LogEntry[];
  expect(markdownOf(entries, 's')).toContain('Run /cmd\n\nIts notes\n');
});

const KEPT = 8_192;
test.for([0, 1, KEPT, KEPT + 1, 2 * KEPT, 2 * KEPT + 1, 65_537, 200_000, 1_000_000])(
  'of %i characters that a command writes, the first and the last 8,192 are kept, and the number of the others is shown',
  async (length) => {
    const command = `head -c ${length} /dev/zero | tr '\\0' x`;
    const { output } = await personCommand(command, tmpdir(), new AbortController().signal);
    const [, head = '', count, tail = ''] = /^(x*)(?:\n\[(\d+) characters are left out\]\n(x*))?$/.exec(output) ?? [];
    expect([head.length + Number(count ?? 0) + tail.length, count === undefined]).toEqual([length, length <= 2 * KEPT]);
    if (count !== undefined) expect([head.length, tail.length]).toEqual([KEPT, KEPT]);
  },
);

test.for(['before', 'after'] as const)(
  'a command whose shell does not start is refused, and an interrupt %s it signals no process',
  async (when) => {
    const kill = vi.spyOn(process, 'kill').mockReturnValue(true);
    onTestFinished(() => kill.mockRestore());
    const interrupt = new AbortController();
    if (when === 'before') interrupt.abort();
    await expect(personCommand('true', '/none/such', interrupt.signal)).rejects.toThrow('ENOENT');
    if (when === 'after') interrupt.abort();
    expect(kill).not.toHaveBeenCalled();
    if (when === 'after') expect(getEventListeners(interrupt.signal, 'abort')).toEqual([]);
  },
);

test('a question about a call shows every argument of it, whatever the arguments are called and combined with', () => {
  const allArgs = {
    plan: 'first\nsecond',
    command: 'ls -l',
    path: 'a.txt',
    description: 'a reason',
    other: 'to nobody',
  };
  const names = Object.keys(allArgs) as (keyof typeof allArgs)[];
  for (let chosen = 1; chosen < 2 ** names.length; chosen++) {
    const args = Object.fromEntries(
      names.filter((_, index) => chosen & (1 << index)).map((name) => [name, allArgs[name]]),
    );
    const call = { callId: 'c1', name: 'deploy', args, reason: 'needsApproval', path: ['c'], payload: null };
    const text = JSON.stringify(approvalLines(call as unknown as PendingCall));
    const unseen = Object.values(args).flatMap((value) => value.split('\n').filter((line) => !text.includes(line)));
    expect([args, unseen]).toEqual([args, []]);
  }
});
